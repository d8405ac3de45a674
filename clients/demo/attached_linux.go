package demo

import (
	"os"
	"os/exec"
	"syscall"
)

// attached makes a child die with its parent, and keeps the terminal's Ctrl-C
// from it: the demo stops its children in order.
func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// detach takes a dead mount away.
func detach(point string) error {
	if os.Geteuid() == 0 {
		return syscall.Unmount(point, syscall.MNT_DETACH)
	}
	return exec.Command("fusermount3", "-u", "-z", "--", point).Run()
}
