package unixsock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollConn is one end of a Unix socket. Each time the peer reads, the kernel
// reports that the socket can be written to, even if it always could. Package net
// always asks for these reports, so each frame wakes a thread for nothing. An
// epollConn asks for them only while a write waits. One goroutine may read and one
// may write at a time. Close may come at any time.
type epollConn struct {
	fd            int
	in, out       *poller
	local, remote net.Addr
	once          sync.Once
}

// poller is an epoll instance that watches one descriptor. The runtime's own
// poller watches the instance.
type poller struct {
	ep   int
	file *os.File
	raw  syscall.RawConn
}

func newPoller(fd int, events uint32) (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
	if err == nil {
		err = unix.SetNonblock(ep, true) // the runtime's poller takes no other
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(ep))
	}
	p := &poller{ep: ep, file: os.NewFile(uintptr(ep), "epoll")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// change sets the events to watch for.
func (p *poller) change(fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.ep, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// until calls try until it does not fail with EAGAIN. In between it waits for the
// descriptor.
func (p *poller) until(try func() (int, error)) (n int, err error) {
	ended := p.raw.Read(func(uintptr) bool {
		for {
			if n, err = try(); !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	switch {
	case errors.Is(ended, os.ErrDeadlineExceeded):
		return 0, ended
	case ended != nil:
		return 0, net.ErrClosed
	}
	return max(n, 0), err
}

// wrap makes an epollConn of a connection, which it closes.
func wrap(c *net.UnixConn) (*epollConn, error) {
	e := &epollConn{local: c.LocalAddr(), remote: c.RemoteAddr()}
	err := onSocket(c, func(fd int) (err error) {
		e.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if e.in, err = newPoller(e.fd, unix.EPOLLIN|unix.EPOLLRDHUP); err != nil {
		return nil, errors.Join(err, unix.Close(e.fd))
	}
	if e.out, err = newPoller(e.fd, 0); err != nil {
		return nil, errors.Join(err, e.in.file.Close(), unix.Close(e.fd))
	}
	return e, c.Close()
}

func (c *epollConn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := c.in.until(func() (int, error) { return unix.Read(c.fd, b) })
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *epollConn) Write(b []byte) (int, error) {
	n, err := c.WriteAll(net.Buffers{b})
	return int(n), err
}

// WriteAll writes all of v, in as few system calls as the socket allows.
func (c *epollConn) WriteAll(v net.Buffers) (total int64, err error) {
	const most = 1024 // slices that the system takes at once
	watched := false
	for len(v) > 0 && err == nil {
		var n int
		n, err = c.out.until(func() (int, error) {
			n, err := sysWritev(c.fd, v[:min(len(v), most)])
			if watched || !errors.Is(err, unix.EAGAIN) {
				return n, err
			}
			watched = true
			if err := c.out.change(c.fd, unix.EPOLLOUT); err != nil {
				return 0, err
			}
			// The poller may not report room that there was before.
			return sysWritev(c.fd, v[:min(len(v), most)])
		})
		total += int64(n)
		for len(v) > 0 && n >= len(v[0]) {
			n, v = n-len(v[0]), v[1:]
		}
		if n > 0 {
			v[0] = v[0][n:]
		}
	}
	if watched && err == nil {
		_, err = c.out.until(func() (int, error) { return 0, c.out.change(c.fd, 0) })
	}
	return total, err
}

// sysWritev is unix.Writev without its report to the race detector, which comes
// after the system call. By then the peer may have answered, and the bytes belong
// to their owner again.
func sysWritev(fd int, v [][]byte) (int, error) {
	parts := make([]unix.Iovec, 0, 16)
	for _, b := range v {
		part := unix.Iovec{Base: unsafe.SliceData(b)}
		part.SetLen(len(b))
		parts = append(parts, part)
	}
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(parts))), uintptr(len(parts)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// TryWrite writes what the socket takes at once, and returns how much that is.
func (c *epollConn) TryWrite(b []byte) int {
	n, err := c.out.until(func() (int, error) {
		n, err := unix.Write(c.fd, b)
		if err != nil {
			n = 0 // the next write that waits finds it again
		}
		return n, nil
	})
	if err != nil {
		return 0
	}
	return n
}

// Close implements net.Conn.
func (c *epollConn) Close() (err error) {
	c.once.Do(func() {
		// Nothing uses the descriptor once both pollers are closed.
		err = errors.Join(c.in.file.Close(), c.out.file.Close(), unix.Close(c.fd))
	})
	return err
}

func (c *epollConn) LocalAddr() net.Addr  { return c.local }
func (c *epollConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *epollConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *epollConn) SetReadDeadline(t time.Time) error { return c.in.file.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *epollConn) SetWriteDeadline(t time.Time) error { return c.out.file.SetReadDeadline(t) }
