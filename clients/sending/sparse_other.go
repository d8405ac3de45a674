//go:build !linux && !darwin

package sending

import "os"

// nextData has data everywhere: the system does not tell.
func nextData(_ *os.File, offset, _ uint64) uint64 { return offset }
