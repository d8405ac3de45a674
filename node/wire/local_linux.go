package wire

import (
	"crypto/sha256"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxLocalPath is what fits a socket's address with its final zero.
const maxLocalPath = 107

// socketUser returns the user that was at the other end when it connected or
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

// readPlace names this boot of this machine, and its network: processes in
// different network namespaces may be meant to be as far apart as machines.
func readPlace() ([placeSize]byte, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [placeSize]byte{}, err
	}
	network, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return [placeSize]byte{}, err
	}
	return sha256.Sum256(append(append(boot, 0), network...)), nil
}
