//go:build !linux

package demo

import (
	"os/exec"
	"syscall"
)

// attached returns nothing special: this system cannot tie a child's life to
// its parent's.
func attached() *syscall.SysProcAttr { return nil }

// detach takes a dead mount away.
func detach(point string) error { return exec.Command("umount", "-f", point).Run() }
