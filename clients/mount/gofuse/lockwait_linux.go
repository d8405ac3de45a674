package gofuse

import (
	"encoding/binary"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// maxLockWaits bounds the requests that wait for locks; a further one is
	// refused with ENOLCK.
	maxLockWaits = 16384
	// lockInSize is the length of a request for a lock.
	lockInSize = inHeaderSize + 48
)

// lockWait is a request for a lock that may wait. It takes a goroutine, and
// neither a worker nor a buffer: thousands may wait, and the one that gives the
// lock up must get through.
type lockWait struct {
	in     fuse.LkIn
	cancel chan struct{} // closed when the kernel interrupts it
	// interrupted is guarded by the connection's mutex.
	interrupted bool
}

// interrupt lets the file system know; the mutex is held.
func (l *lockWait) interrupt() {
	if !l.interrupted {
		l.interrupted = true
		close(l.cancel)
	}
}

// startLock begins a request for a lock that may wait. False: it is another
// request.
func (c *connection) startLock(in []byte) bool {
	if operation(in) != opSetLockWait || len(in) < lockInSize {
		return false
	}
	l := &lockWait{in: lockIn(in), cancel: make(chan struct{})}
	c.mu.Lock()
	full := len(c.locks) >= maxLockWaits && l.in.Lk.Typ != syscall.F_UNLCK
	if !full {
		c.locks[l.in.Unique] = l
	}
	c.mu.Unlock()
	if full {
		c.say(in, fuse.Status(syscall.ENOLCK))
		return true
	}
	c.workers.Go(func() {
		status := c.setLock(l)
		c.say(l.header(), status)
		c.mu.Lock()
		delete(c.locks, l.in.Unique)
		c.mu.Unlock()
	})
	return true
}

// setLock asks the file system for the lock. A panic there is an error here.
func (c *connection) setLock(l *lockWait) (status fuse.Status) {
	defer func() {
		if cause := recover(); cause != nil {
			status = c.options.PanicHandler(cause)
		}
	}()
	return c.b.SetLkw(l.cancel, &l.in)
}

// header is what an answer needs of the request.
func (l *lockWait) header() []byte {
	in := binary.NativeEndian.AppendUint32(nil, inHeaderSize)
	in = binary.NativeEndian.AppendUint32(in, opSetLockWait)
	return binary.NativeEndian.AppendUint64(in, l.in.Unique)
}

func lockIn(in []byte) fuse.LkIn {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	var r fuse.LkIn
	r.InHeader = headerIn(in)
	in = in[inHeaderSize:]
	r.Fh, r.Owner = u64(in), u64(in[8:])
	r.Lk.Start, r.Lk.End, r.Lk.Typ, r.Lk.Pid = u64(in[16:]), u64(in[24:]), u32(in[32:]), u32(in[36:])
	r.LkFlags = u32(in[40:])
	return r
}
