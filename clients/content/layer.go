package content

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// bufferSize is the largest buffer of dirty bytes.
const bufferSize = 1 << 20

// largePiece is from what length on a write gets a buffer of its own size.
const largePiece = 64 << 10

// segment is a run of dirty bytes, or of a hole where buf is nil. No two
// segments share bytes that either may still grow into or write to.
type segment struct {
	off, n uint64
	buf    []byte
}

func (s *segment) end() uint64 { return s.off + s.n }

// layer is what one or more writes make of a file, on top of the layer or the
// version below it: first the size becomes truncate, where cut is set; then the
// segments lie over it; then it is at least extend bytes long. Writes go to the
// newest layer until it is frozen; frozen ones are committed in order. The
// file's mutex guards it; a frozen layer's bytes do not change any more.
type layer struct {
	cut      bool
	truncate uint64
	segs     []segment // ascending and disjoint
	extend   uint64
	// appends marks a layer of appended bytes only: where they go, the active
	// says. Until then they stand at base, which moves with the size below.
	appends bool
	base    uint64

	bytes  int64 // buffers' capacity, charged to the budget
	few    int64 // of them: charged as few
	since  time.Time
	mtime  time.Time
	as     any
	setid  bool
	number uint64 // of the last write in the journal
	logged int64  // bytes of its writes there, charged to the engine's logged
	// recovered is what a crash left behind that this layer is a part of, or nil.
	recovered *recovered
	// from..settle are the journal's writes that are done when this layer is.
	from, settle uint64
	frozen       bool
	sent         bool   // its commit may have been run
	doubts       uint64 // the file's when the commit was sent
	// stream is set where the layer was frozen because it is large: its last
	// bytes, behind the last chunk boundary, move to the next layer.
	stream bool

	// work is what its uploads and commits cost; nil where nobody counts.
	work *trace.Operation

	done chan struct{} // closed when the layer is committed, or never will be
	err  error         // set before done is closed
}

func newLayer(now time.Time) *layer { return &layer{since: now, mtime: now, done: make(chan struct{})} }

// newLayer makes a layer whose work is counted.
func (e *Engine) newLayer(now time.Time) *layer {
	l := newLayer(now)
	l.work = e.opt.Trace.Begin(trace.WriteBehind, trace.Caller{})
	return l
}

// context is what a layer's uploads run under.
func (l *layer) context(e *Engine) (context.Context, context.CancelFunc) {
	return context.WithTimeout(trace.With(e.ctx, l.work), e.opt.CommitTimeout)
}

// end takes what a layer cost down, where nobody waited for it, and tells
// those who wait; its err is set.
func (e *Engine) end(l *layer) {
	e.opt.Trace.EndWork(l.work, nil)
	e.budget.charge(charge{-l.bytes, -l.few})
	if l.logged > 0 {
		e.logged.charge(charge{all: -l.logged})
	}
	close(l.done)
}

// wait returns the layer's outcome; a nil layer is done.
func (l *layer) wait(ctx context.Context) error {
	const op fault.Op = "content.wait"
	if l == nil {
		return nil
	}
	if isClosed(l.done) {
		return l.err
	}
	o := trace.From(ctx)
	mark, claimed := o.Begin(), o.Claim(l.work)
	defer func() { o.Waited(mark, l.work, claimed) }()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, op, "", context.Cause(ctx))
	}
}

// size is the file's size with the layer over one of so many bytes.
func (l *layer) size(below uint64) uint64 {
	if l.appends {
		return below + l.length()
	}
	if l.cut {
		below = l.truncate
	}
	if n := len(l.segs); n > 0 {
		below = max(below, l.segs[n-1].end())
	}
	return max(below, l.extend)
}

// length is how many bytes an append layer adds.
func (l *layer) length() uint64 {
	if n := len(l.segs); n > 0 {
		return l.segs[n-1].end() - l.base
	}
	return 0
}

// visible is up to where the layer below shows through.
func (l *layer) visible() uint64 {
	if l.cut {
		return l.truncate
	}
	return chunk.MaxFileSize
}

// at returns the index of the first segment that ends behind off.
func (l *layer) at(off uint64) int {
	if n := len(l.segs); n > 0 && l.segs[n-1].off <= off { // streams
		if l.segs[n-1].end() > off {
			return n - 1
		}
		return n
	}
	i, _ := slices.BinarySearchFunc(l.segs, off, func(s segment, off uint64) int {
		if s.end() <= off {
			return -1
		}
		return 1
	})
	return i
}

// write puts bytes at off and returns how much larger the buffers became.
func (l *layer) write(p []byte, off uint64) (grown int64) {
	for i := l.at(off); len(p) > 0; {
		if i < len(l.segs) && l.segs[i].off <= off {
			s := &l.segs[i]
			if s.buf == nil {
				l.splitHole(i, off, min(off+uint64(len(p)), s.end()))
				i = l.at(off)
				continue
			}
			n := copy(s.buf[off-s.off:s.n], p)
			p, off = p[n:], off+uint64(n)
			i++
			continue
		}
		gap := uint64(len(p))
		if i < len(l.segs) {
			gap = min(gap, l.segs[i].off-off)
		}
		n, more, inserted := l.fill(i, p[:gap], off)
		grown += more
		p, off = p[n:], off+uint64(n)
		if inserted {
			i++
		}
	}
	l.bytes += grown
	return grown
}

// fill puts bytes into the gap before segment i: into the spare room of the
// segment before it, else into a new one. It returns how many it took.
func (l *layer) fill(i int, p []byte, off uint64) (n int, grown int64, inserted bool) {
	size := len(p)
	if i > 0 && l.segs[i-1].end() == off && l.segs[i-1].buf != nil {
		s := &l.segs[i-1]
		if room := cap(s.buf) - len(s.buf); room > 0 {
			n = min(room, len(p))
			s.buf = append(s.buf, p[:n]...)
			s.n += uint64(n)
			return n, 0, false
		}
		size = max(size, 2*cap(s.buf)) // a stream: larger buffers
	}
	var buf []byte
	if n = min(len(p), bufferSize); n >= largePiece {
		buf = append(buf, p[:n]...) // as it is: spare room would have to be cleared
	} else {
		buf = append(make([]byte, 0, min(size, bufferSize)), p[:n]...)
	}
	size = cap(buf)
	l.segs = slices.Insert(l.segs, i, segment{off: off, n: uint64(n), buf: buf})
	return n, int64(size), true
}

// splitHole removes [from, to) from the hole at index i.
func (l *layer) splitHole(i int, from, to uint64) {
	h := l.segs[i]
	var keep []segment
	if from > h.off {
		keep = append(keep, segment{off: h.off, n: from - h.off})
	}
	if to < h.end() {
		keep = append(keep, segment{off: to, n: h.end() - to})
	}
	l.segs = slices.Replace(l.segs, i, i+1, keep...)
}

// clear removes [from, to) from the segments. Buffers stay charged until the
// layer is committed.
func (l *layer) clear(from, to uint64) {
	var out []segment
	for _, s := range l.segs {
		if s.end() <= from || s.off >= to {
			out = append(out, s)
			continue
		}
		if s.off < from {
			left := segment{off: s.off, n: from - s.off}
			if s.buf != nil {
				left.buf = s.buf[:left.n:left.n]
			}
			out = append(out, left)
		}
		if s.end() > to {
			right := segment{off: to, n: s.end() - to}
			if s.buf != nil {
				right.buf = s.buf[to-s.off:]
			}
			out = append(out, right)
		}
	}
	l.segs = out
}

// hole makes [from, to) zeros.
func (l *layer) hole(from, to uint64) {
	if from >= to {
		return
	}
	l.clear(from, to)
	l.segs = slices.Insert(l.segs, l.at(from), segment{off: from, n: to - from})
}

// resize makes the file n bytes long.
func (l *layer) resize(n uint64) {
	l.clear(n, chunk.MaxFileSize)
	if !l.cut {
		l.cut, l.truncate = true, n
	}
	l.truncate, l.extend = min(l.truncate, n), n
}

// under adds bytes below what the layer already has: those of an older layer
// that move here. It returns how much larger the buffers became.
func (l *layer) under(p []byte, off uint64) (grown int64) {
	end := min(off+uint64(len(p)), max(l.visible(), off))
	for off < end {
		i := l.at(off)
		if i < len(l.segs) && l.segs[i].off <= off {
			next := min(l.segs[i].end(), end)
			p, off = p[next-off:], next
			continue
		}
		gap := end - off
		if i < len(l.segs) {
			gap = min(gap, l.segs[i].off-off)
		}
		grown += l.write(p[:gap], off)
		p, off = p[gap:], off+gap
	}
	return grown
}

// move shifts an append layer to where the file now ends.
func (l *layer) move(base uint64) {
	for i := range l.segs {
		l.segs[i].off = l.segs[i].off - l.base + base
	}
	l.base = base
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
