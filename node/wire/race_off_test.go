//go:build !race

package wire

const memoryFactor = 1
