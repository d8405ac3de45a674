//go:build !linux

package mount

// Below answers that every thread is one of every process: this system does
// not tell cheaply.
func Below(uint32, uint32) bool { return true }
