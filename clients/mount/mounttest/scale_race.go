//go:build race

package mounttest

// scale divides the sizes of the large cases, because the race detector makes
// each operation ten times as slow.
const scale = 10
