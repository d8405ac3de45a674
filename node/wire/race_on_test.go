//go:build race

package wire

// The race detector keeps several times the memory of what it watches.
const memoryFactor = 4
