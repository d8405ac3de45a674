package gofuse

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// keepFromChildren marks this process's ends of FUSE connections to be closed
// in the programs that it starts: go-fuse opens the device without. A child that
// held one would keep the connection of a mount that died, and whoever waits
// for an answer on it could not even be killed.
func keepFromChildren() {
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return // no /proc: the mount works all the same
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err != nil || to != devFuse {
			continue
		}
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
}
