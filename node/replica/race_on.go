//go:build race || checks

package replica

// checksAll: Flush checks every invariant of what it flushed. That is for
// tests, which the race detector marks, or the tag checks where it is off.
const checksAll = true
