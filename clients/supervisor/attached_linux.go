package supervisor

import (
	"os"
	"os/exec"
	"syscall"
)

// attached makes a child die with its parent, and keeps the terminal's Ctrl-C
// from it: children are stopped in order.
func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Detach takes a dead mount away, and ends its connection: a mount that was
// killed while it told the kernel of a change would otherwise wait for a
// directory that waits for the mount, and neither could be ended.
func Detach(point string) error {
	if os.Geteuid() == 0 {
		return syscall.Unmount(point, syscall.MNT_DETACH|syscall.MNT_FORCE)
	}
	return exec.Command("fusermount3", "-u", "-z", "--", point).Run()
}
