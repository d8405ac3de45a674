package demo

import "syscall"

// attached makes a child die with its parent, and keeps the terminal's Ctrl-C
// from it: the demo stops its children in order.
func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// detach takes a dead mount away.
func detach(point string) error { return syscall.Unmount(point, syscall.MNT_DETACH) }
