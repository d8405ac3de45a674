//go:build !linux

package supervisor

import (
	"os/exec"
	"syscall"
)

// attached returns nothing special: this system cannot tie a child's life to
// its parent's.
func attached() *syscall.SysProcAttr { return nil }

// Detach takes a dead mount away.
func Detach(point string) error { return exec.Command("umount", "-f", point).Run() }
