//go:build !windows

package demo

import (
	"os"
	"syscall"
)

// signalZero asks whether a process is there.
func signalZero(p *os.Process) error { return p.Signal(syscall.Signal(0)) }
