//go:build linux || darwin

package unixsock

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// User returns this process's user, as the kernel names it to the other end.
func User() uint32 { return uint32(os.Geteuid()) }

// nobody is the ID that no user has.
const nobody = ^uint32(0)

func fileUser(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return nobody
}

// isRefused reports whether a dial failed because no process listens.
func isRefused(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
}

// onSocket runs f on a socket's descriptor.
func onSocket(c *net.UnixConn, f func(fd int) error) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = rc.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}
