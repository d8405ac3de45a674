//go:build !windows

package supervisor

import (
	"os"
	"syscall"
)

// askToStop sends the signal by which a child stops in order.
func askToStop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
