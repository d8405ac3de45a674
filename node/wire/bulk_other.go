//go:build !linux

package wire

import "syscall"

// tuneBulk leaves a connection for bulk as the system made it.
func tuneBulk(syscall.Conn) {}
