package content

import (
	"slices"

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

// edit is what one or more writes make of a file, on top of what is below it:
// first the size becomes truncate, where cut is set; then the segments lie over
// it; then it is at least extend bytes long.
type edit struct {
	cut      bool
	truncate uint64
	segs     []segment // ascending and disjoint
	extend   uint64
	// appends marks an edit of appended bytes only: where they go, the active
	// says. Until then they stand at base, which moves with the size below.
	appends bool
	base    uint64
	bytes   int64 // the buffers' capacity
}

// size is the file's size with the edit over one of so many bytes.
func (l *edit) size(below uint64) uint64 {
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

// length is how many bytes an append adds.
func (l *edit) length() uint64 {
	if n := len(l.segs); n > 0 {
		return l.segs[n-1].end() - l.base
	}
	return 0
}

// visible is up to where what is below shows through.
func (l *edit) visible() uint64 {
	if l.cut {
		return l.truncate
	}
	return chunk.MaxFileSize
}

// at returns the index of the first segment that ends behind off.
func (l *edit) at(off uint64) int {
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
func (l *edit) write(p []byte, off uint64) (grown int64) {
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
func (l *edit) fill(i int, p []byte, off uint64) (n int, grown int64, inserted bool) {
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
func (l *edit) splitHole(i int, from, to uint64) {
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

// clear removes [from, to) from the segments. Their buffers stay counted.
func (l *edit) clear(from, to uint64) {
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
func (l *edit) hole(from, to uint64) {
	if from >= to {
		return
	}
	l.clear(from, to)
	l.segs = slices.Insert(l.segs, l.at(from), segment{off: from, n: to - from})
}

// resize makes the file n bytes long.
func (l *edit) resize(n uint64) {
	l.clear(n, chunk.MaxFileSize)
	if !l.cut {
		l.cut, l.truncate = true, n
	}
	l.truncate, l.extend = min(l.truncate, n), n
}

// under adds bytes below what the edit already has: those of an older one that
// move here. It returns how much larger the buffers became.
func (l *edit) under(p []byte, off uint64) (grown int64) {
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

// move shifts an append to where the file now ends.
func (l *edit) move(base uint64) {
	for i := range l.segs {
		l.segs[i].off = l.segs[i].off - l.base + base
	}
	l.base = base
}

func (l *edit) empty() bool { return !l.cut && len(l.segs) == 0 && l.extend == 0 }

// apply makes a journaled change.
func (l *edit) apply(w Written) {
	switch w.Kind {
	case WriteData, WriteAppend:
		l.write(w.Data, w.Offset)
	case WriteHole:
		l.hole(w.Offset, w.Offset+w.Length)
	case WriteTruncate:
		l.resize(w.Offset)
	case WriteExtend:
		l.extend = max(l.extend, w.Offset)
	}
}
