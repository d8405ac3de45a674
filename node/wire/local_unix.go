//go:build linux || darwin

package wire

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// localUser is the user that the kernel names to the other end.
func localUser() uint32 { return uint32(os.Geteuid()) }

// nobody is a user that no process has.
const nobody = ^uint32(0)

func fileUser(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return nobody
}

// refusedByNobody reports whether a dial failed because no process listens.
func refusedByNobody(err error) bool {
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
