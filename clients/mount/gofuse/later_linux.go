package gofuse

import (
	"encoding/binary"
	"sync"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// maxLater bounds the reads that are answered later: of more, each takes a
	// worker, as other requests do.
	maxLater = 64
	// laterRead is up to what size.
	laterRead = 4 << 10
)

// laters are the reads that no worker works on: whoever brings their bytes
// answers them. The connection does not end before the last: see end.
type laters struct {
	b       *binding
	replies *replies

	mu    sync.Mutex        // guards the rest
	reads map[uint64]*later // by request
	over  bool              // the kernel has let go
}

// later is one of these reads. If it comes to nothing, it is worked on after all.
type later struct {
	all    *laters
	in     fuse.ReadIn
	cancel chan struct{} // closed when the kernel interrupts it
	// interrupted is guarded by all.mu.
	interrupted bool
}

// start begins a read that is answered later, or takes note that such a one is
// interrupted. False: it is another request. Who calls it has the turn, and so
// knows of a read before it reads that it is interrupted.
func (a *laters) start(in []byte) bool {
	if a.b.starter == nil {
		return false
	}
	if request, ok := interrupted(in); ok {
		return a.interrupt(request)
	}
	if operation(in) != opRead || len(in) < readInSize {
		return false
	}
	l := &later{all: a, in: readIn(in), cancel: make(chan struct{})}
	if l.in.Size > laterRead || !a.keep(l) {
		return false
	}
	if a.b.starter.StartRead(caller(&l.in.InHeader, 0), node(&l.in.InHeader), mount.Handle(l.in.Fh), int64(l.in.Offset), int(l.in.Size), l.then) {
		return true
	}
	a.drop(l)
	return false
}

// keep notes a read, unless there are too many.
func (a *laters) keep(l *later) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.reads) == maxLater {
		return false
	}
	a.reads[l.in.Unique] = l
	return true
}

func (a *laters) drop(l *later) {
	a.mu.Lock()
	delete(a.reads, l.in.Unique)
	a.mu.Unlock()
}

// interrupt reports whether the request is a read that is answered later.
func (a *laters) interrupt(request uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.reads[request]
	if l != nil {
		l.interruptLocked()
	}
	return l != nil
}

// interruptAll interrupts every read, as the kernel has let go, and reports
// whether there is one.
func (a *laters) interruptAll() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, l := range a.reads {
		l.interruptLocked()
	}
	return len(a.reads) > 0
}

// isOver reports whether the kernel has let go.
func (a *laters) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// interruptLocked lets who works on the read after all know; the mutex is held.
func (l *later) interruptLocked() {
	if !l.interrupted {
		l.interrupted = true
		close(l.cancel)
	}
}

// then answers the read, or has it worked on.
func (l *later) then(data []byte, ok bool) {
	if !ok {
		go l.work()
		return
	}
	l.answer(data, fuse.OK)
	l.all.drop(l)
}

// work is what a worker would have done. Where the kernel has let go, nobody
// waits.
func (l *later) work() {
	defer l.all.drop(l)
	if l.all.isOver() {
		return
	}
	buf := make([]byte, l.in.Size)
	got, status := l.all.b.Read(l.cancel, &l.in, buf)
	if status.Ok() {
		buf, status = got.Bytes(buf)
	} else {
		buf = nil
	}
	l.answer(buf, status)
}

func (l *later) answer(data []byte, status fuse.Status) {
	out := make([]byte, outHeaderSize, outHeaderSize+len(data))
	binary.NativeEndian.PutUint32(out, uint32(outHeaderSize+len(data)))
	binary.NativeEndian.PutUint32(out[4:], uint32(-status))
	binary.NativeEndian.PutUint64(out[8:], l.in.Unique)
	out = append(out, data...)
	to := l.all.replies
	to.deliver(opRead, func() (int, error) { return unix.Write(to.fd, out) })
}
