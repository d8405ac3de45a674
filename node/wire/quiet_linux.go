package wire

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

// quiet is one end of a Unix socket. The kernel tells whoever watches such a
// socket each time when the other end has read, that it can be written to, even
// if it always could; package net always watches for that, which wakes a thread
// for nothing with every frame. This one watches for it only while a write
// waits. One goroutine may read and one write at a time; Close may come at any
// time.
type quiet struct {
	fd            int
	in, out       *watch
	local, remote net.Addr
	once          sync.Once
}

// watch is an epoll instance that watches one descriptor, and which the
// runtime's poller watches.
type watch struct {
	ep   int
	file *os.File
	raw  syscall.RawConn
}

func newWatch(fd int, events uint32) (*watch, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
	if err == nil {
		err = unix.SetNonblock(ep, true) // else the poller would not take it
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll_ctl", err), unix.Close(ep))
	}
	w := &watch{ep: ep, file: os.NewFile(uintptr(ep), "epoll")}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return w, nil
}

// change says what the watch is for.
func (w *watch) change(fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.ep, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// until calls try until it does not fail with EAGAIN, and waits for the
// descriptor in between.
func (w *watch) until(try func() (int, error)) (n int, err error) {
	ended := w.raw.Read(func(uintptr) bool {
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

// hush takes a connection over.
func hush(c *net.UnixConn) (*quiet, error) {
	q := &quiet{local: c.LocalAddr(), remote: c.RemoteAddr()}
	err := onSocket(c, func(fd int) (err error) {
		q.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if q.in, err = newWatch(q.fd, unix.EPOLLIN|unix.EPOLLRDHUP); err != nil {
		return nil, errors.Join(err, unix.Close(q.fd))
	}
	if q.out, err = newWatch(q.fd, 0); err != nil {
		return nil, errors.Join(err, q.in.file.Close(), unix.Close(q.fd))
	}
	return q, c.Close()
}

func (q *quiet) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := q.in.until(func() (int, error) { return unix.Read(q.fd, b) })
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (q *quiet) Write(b []byte) (int, error) {
	n, err := q.writev(net.Buffers{b})
	return int(n), err
}

// writev writes all of v, in as few system calls as the socket lets it.
func (q *quiet) writev(v net.Buffers) (total int64, err error) {
	const most = 1024 // slices that the system takes at once
	watched := false
	for len(v) > 0 && err == nil {
		var n int
		n, err = q.out.until(func() (int, error) {
			n, err := sysWritev(q.fd, v[:min(len(v), most)])
			if watched || !errors.Is(err, unix.EAGAIN) {
				return n, err
			}
			watched = true
			if err := q.out.change(q.fd, unix.EPOLLOUT); err != nil {
				return 0, err
			}
			// Of what became free before, the watch may say nothing.
			return sysWritev(q.fd, v[:min(len(v), most)])
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
		_, err = q.out.until(func() (int, error) { return 0, q.out.change(q.fd, 0) })
	}
	return total, err
}

// sysWritev is unix.Writev, which tells the race detector of its reads after the
// system call. By then the peer may have answered, and the bytes belong to their
// owner again.
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

// try writes what the socket takes at once.
func (q *quiet) try(b []byte) int {
	n, err := q.out.until(func() (int, error) {
		n, err := unix.Write(q.fd, b)
		if err != nil {
			n = 0 // it comes again where somebody waits
		}
		return n, nil
	})
	if err != nil {
		return 0
	}
	return n
}

// Close implements net.Conn.
func (q *quiet) Close() (err error) {
	q.once.Do(func() {
		// Nobody uses the descriptor once both are closed.
		err = errors.Join(q.in.file.Close(), q.out.file.Close(), unix.Close(q.fd))
	})
	return err
}

func (q *quiet) LocalAddr() net.Addr  { return q.local }
func (q *quiet) RemoteAddr() net.Addr { return q.remote }

// SetDeadline implements net.Conn.
func (q *quiet) SetDeadline(t time.Time) error {
	return errors.Join(q.SetReadDeadline(t), q.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (q *quiet) SetReadDeadline(t time.Time) error { return q.in.file.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (q *quiet) SetWriteDeadline(t time.Time) error { return q.out.file.SetReadDeadline(t) }
