//go:build !race

package mounttest

// scale divides the sizes of the large cases.
const scale = 1
