package gofuse

import (
	"encoding/binary"

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
	// readInSize is the length of a request to read.
	readInSize = inHeaderSize + 40
)

// later is a read that no worker works on: whoever brings its bytes answers it.
// If that comes to nothing, it is worked on after all.
type later struct {
	c      *connection
	in     fuse.ReadIn
	cancel chan struct{} // closed when the kernel interrupts it
	// interrupted is guarded by the connection's mutex.
	interrupted bool
}

// startLater begins a read that is answered later, or takes note that such a
// one is interrupted. False: it is another request. Who calls it has the turn,
// and so knows of a read before it reads that it is interrupted.
func (c *connection) startLater(in []byte) bool {
	switch {
	case c.b.starter == nil:
		return false
	case operation(in) == opInterrupt && len(in) >= inHeaderSize+8:
		return c.interruptLater(binary.NativeEndian.Uint64(in[inHeaderSize:]))
	case operation(in) != opRead || len(in) < readInSize:
		return false
	}
	l := &later{c: c, in: readIn(in), cancel: make(chan struct{})}
	if l.in.Size > laterRead || !c.keepLater(l) {
		return false
	}
	if c.b.starter.StartRead(caller(&l.in.InHeader, 0), node(&l.in.InHeader), mount.Handle(l.in.Fh), int64(l.in.Offset), int(l.in.Size), l.then) {
		return true
	}
	c.dropLater(l)
	return false
}

func headerIn(in []byte) (h fuse.InHeader) {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	h.Length, h.Opcode, h.Unique, h.NodeId = u32(in), u32(in[4:]), u64(in[8:]), u64(in[16:])
	h.Uid, h.Gid, h.Pid = u32(in[24:]), u32(in[28:]), u32(in[32:])
	return h
}

func readIn(in []byte) fuse.ReadIn {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	var r fuse.ReadIn
	r.InHeader = headerIn(in)
	in = in[inHeaderSize:]
	r.Fh, r.Offset, r.Size, r.ReadFlags, r.LockOwner, r.Flags = u64(in), u64(in[8:]), u32(in[16:]), u32(in[20:]), u64(in[24:]), u32(in[32:])
	return r
}

// keepLater notes a read, unless there are too many. The connection does not
// end before dropLater: see end.
func (c *connection) keepLater(l *later) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.later) == maxLater {
		return false
	}
	c.later[l.in.Unique] = l
	return true
}

func (c *connection) dropLater(l *later) {
	c.mu.Lock()
	delete(c.later, l.in.Unique)
	c.mu.Unlock()
}

// interruptLater reports whether the request is a read that is answered later.
func (c *connection) interruptLater(request uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.later[request]
	if l != nil {
		l.interrupt()
	}
	return l != nil
}

// interrupt lets who works on the read after all know; the mutex is held.
func (l *later) interrupt() {
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
	l.c.dropLater(l)
}

// work is what a worker would have done. Where the kernel has let go, nobody
// waits.
func (l *later) work() {
	defer l.c.dropLater(l)
	l.c.mu.Lock()
	over := l.c.over
	l.c.mu.Unlock()
	if over {
		return
	}
	buf := make([]byte, l.in.Size)
	got, status := l.c.b.Read(l.cancel, &l.in, buf)
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
	l.c.deliver(opRead, func() (int, error) { return unix.Write(l.c.fd, out) })
}
