package unixsock

import (
	"crypto/sha256"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxPath is what fits a socket's address with its final zero.
const maxPath = 107

// socketUser returns the user of the other end at the time when it connected or
// listened.
func socketUser(c *net.UnixConn) (uint32, error) {
	var user uint32
	err := onSocket(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			user = cred.Uid
		}
		return err
	})
	return user, err
}

// widen enlarges a socket's buffers as far as the system lets it.
func widen(c *net.UnixConn, n int) {
	_ = onSocket(c, func(fd int) error { // it works with small ones too
		for _, o := range [...][2]int{{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}, {unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}} {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], n) != nil {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], n)
			}
		}
		return nil
	})
}

// ReadPlace names this boot of this machine, and its network: network namespaces
// may be meant to be as far apart as machines.
func ReadPlace() (Place, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Place{}, err
	}
	network, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return Place{}, err
	}
	return sha256.Sum256(append(append(boot, 0), network...)), nil
}
