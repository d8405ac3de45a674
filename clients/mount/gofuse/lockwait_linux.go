package gofuse

import (
	"encoding/binary"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxLockWaits bounds the requests that wait for locks; a further one is refused
// with ENOLCK.
const maxLockWaits = 16384

// lockWaits are the requests for locks that may wait. Each takes a goroutine, and
// neither a worker nor a buffer: thousands may wait, and the one that gives the
// lock up must get through.
type lockWaits struct {
	b        *binding
	replies  *replies
	workers  *sync.WaitGroup
	panicked func(cause any) fuse.Status

	mu      sync.Mutex           // guards the rest
	waiting map[uint64]*lockWait // by request
}

// lockWait is one of these requests.
type lockWait struct {
	in     fuse.LkIn
	cancel chan struct{} // closed when the kernel interrupts it
	// interrupted is guarded by the mutex of all.
	interrupted bool
}

// interruptLocked lets the file system know; the mutex is held.
func (l *lockWait) interruptLocked() {
	if !l.interrupted {
		l.interrupted = true
		close(l.cancel)
	}
}

// start begins a request for a lock that may wait. False: it is another request.
func (a *lockWaits) start(in []byte) bool {
	if operation(in) != opSetLockWait || len(in) < lockInSize {
		return false
	}
	l := &lockWait{in: lockIn(in), cancel: make(chan struct{})}
	if !a.keep(l) {
		a.replies.say(in, fuse.Status(syscall.ENOLCK))
		return true
	}
	a.workers.Go(func() {
		status := a.set(l)
		a.replies.say(l.header(), status)
		a.mu.Lock()
		delete(a.waiting, l.in.Unique)
		a.mu.Unlock()
	})
	return true
}

// keep notes a request, unless too many wait. One that gives up a lock is never
// too many.
func (a *lockWaits) keep(l *lockWait) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxLockWaits && l.in.Lk.Typ != syscall.F_UNLCK {
		return false
	}
	a.waiting[l.in.Unique] = l
	return true
}

// set asks the file system for the lock. A panic there is an error here.
func (a *lockWaits) set(l *lockWait) (status fuse.Status) {
	defer func() {
		if cause := recover(); cause != nil {
			status = a.panicked(cause)
		}
	}()
	return a.b.SetLkw(l.cancel, &l.in)
}

// interrupt reports whether the request waits for a lock.
func (a *lockWaits) interrupt(request uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.waiting[request]
	if l != nil {
		l.interruptLocked()
	}
	return l != nil
}

// interruptAll interrupts every request, and reports whether there is one.
func (a *lockWaits) interruptAll() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.waiting {
		l.interruptLocked()
	}
	return len(a.waiting) > 0
}

// header is what an answer needs of the request.
func (l *lockWait) header() []byte {
	in := binary.NativeEndian.AppendUint32(nil, inHeaderSize)
	in = binary.NativeEndian.AppendUint32(in, opSetLockWait)
	return binary.NativeEndian.AppendUint64(in, l.in.Unique)
}
