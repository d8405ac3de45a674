//go:build !race && !checks

package replica

// checksAll: Flush checks the cheap invariants alone.
const checksAll = false
