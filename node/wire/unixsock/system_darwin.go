package unixsock

import (
	"crypto/sha256"
	"net"

	"golang.org/x/sys/unix"
)

// maxPath is what fits a socket's address with its final zero.
const maxPath = 103

// socketUser returns the user of the other end at the time when it connected or
// listened.
func socketUser(c *net.UnixConn) (uint32, error) {
	var user uint32
	err := onSocket(c, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			user = cred.Uid
		}
		return err
	})
	return user, err
}

// widen enlarges a socket's buffers as far as the system lets it.
func widen(c *net.UnixConn, n int) {
	_ = c.SetWriteBuffer(n) // it works with small ones too
	_ = c.SetReadBuffer(n)
}

// ReadPlace names this boot of this machine.
func ReadPlace() (Place, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	return sha256.Sum256([]byte(boot)), err
}
