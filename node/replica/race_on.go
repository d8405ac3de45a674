//go:build race

package replica

// checksAll: Flush checks every invariant of what it flushed. That is for
// tests, which the race detector marks.
const checksAll = true
