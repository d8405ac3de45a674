//go:build !race

package replica

// checksAll: Flush checks the cheap invariants alone.
const checksAll = false
