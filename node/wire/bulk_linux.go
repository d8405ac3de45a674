package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// bulkUnsent is how many bytes of a bulk connection the kernel takes before
	// it has sent them: what waits in this host's own queue can still be
	// overtaken.
	bulkUnsent = 256 << 10
	// bulkControl keeps the queue before the narrowest link of a path short,
	// where others fill it and make everything wait that goes the same way.
	bulkControl = "bbr"
	// bulkFar is the round trip, in microseconds, from which a connection is
	// taken for one over a wide area.
	bulkFar = 5000
)

// tuneBulk prepares a TCP connection for bulk: it leaves room on the path for
// others. What the kernel does not have, or does not let this process use, is
// left as it is.
func tuneBulk(c syscall.Conn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) { // likewise
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bulkUnsent)
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Rtt >= bulkFar {
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, bulkControl)
		}
	})
}
