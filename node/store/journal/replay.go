package journal

import (
	"errors"
	"hash/crc32"
	"io"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// readAhead is how much of a segment replay and search read at once.
const readAhead = 1 << 20

// Replay calls fn for each record at or behind from, and at or behind the
// tail, in order, and then opens the journal for appends behind the last whole
// frame. It runs once. A frame that a crash cut short ends the log; a damaged
// frame with whole ones behind it is Corrupt, because those acknowledged it.
// The payload passed to fn is valid only during the call.
func (j *Journal) Replay(from Position, fn func(Position, Record) error) error {
	j.mu.Lock()
	defer j.mu.Unlock() // nobody else uses the journal yet
	if j.replayed {
		return fault.E(fault.Invalid, "journal.Replay", "", "replayed already")
	}
	r := replay{j: j, from: from, fn: fn}
	if err := r.run(); err != nil {
		return err
	}
	j.replayed = true
	return nil
}

// replay is the state of one Replay.
type replay struct {
	j    *Journal
	from Position
	fn   func(Position, Record) error
	at   Position // end of the last whole frame

	// The window is the stretch of a segment that was read last.
	buf    []byte
	window []byte
	of     *segment
	start  int64
}

func (r *replay) run() error {
	j := r.j
	last := -1
	for i, s := range j.live {
		s.used = disk.Block
		first, ok, err := r.head(s, disk.Block)
		if err != nil {
			return err
		}
		if !ok || i > 0 && first.prev != r.at {
			break
		}
		if err := r.segment(s); err != nil {
			return err
		}
		last = i
	}
	if err := r.nothingBehind(last); err != nil {
		return err
	}
	// Segments begun but without a whole frame are free again.
	j.free = append(j.free, j.live[last+1:]...)
	base := r.at
	if last < 0 && len(j.live) > 0 {
		base = max(base, j.live[0].start())
	}
	base = max(base, j.tail)
	j.live = j.live[:last+1]
	if last >= 0 {
		j.w.at = j.live[last]
		j.left = j.w.at.bytes - j.w.at.used
	}
	j.w.prev, j.end = base, base
	j.tail = min(j.tail, j.end)
	return nil
}

// head reads a frame's header.
func (r *replay) head(s *segment, off int64) (frameHead, bool, error) {
	if off+disk.Block > s.bytes {
		return frameHead{}, false, nil
	}
	b, err := r.read(s, off, disk.Block)
	if err != nil {
		return frameHead{}, false, err
	}
	h, ok := decodeFrameHead(b, r.j.key, s.start()+Position(off))
	return h, ok && off+disk.RoundUp(frameHeader+int64(h.length)) <= s.bytes, nil
}

// read returns n bytes of a segment, from the window or by reading ahead.
func (r *replay) read(s *segment, off int64, n int) ([]byte, error) {
	if r.of == s && off >= r.start && off+int64(n) <= r.start+int64(len(r.window)) {
		return r.window[off-r.start:][:n], nil
	}
	want := int(min(int64(max(n, readAhead)), s.bytes-off))
	if cap(r.buf) < want {
		r.buf = disk.Aligned(want)
	}
	r.of = nil
	if _, err := s.f.ReadAt(r.buf[:want], off); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.Wrap(fault.IO, "journal.Replay", s.name(), err)
	}
	r.of, r.start, r.window = s, off, r.buf[:want]
	return r.window[:n], nil
}

// segment replays the whole frames of one segment.
func (r *replay) segment(s *segment) error {
	for first := true; ; first = false {
		h, ok, err := r.head(s, s.used)
		if err != nil {
			return err
		}
		if !ok || !first && h.prev != r.at {
			return nil
		}
		n := int(disk.RoundUp(frameHeader + int64(h.length)))
		b, err := r.read(s, s.used, n)
		if err != nil {
			return err
		}
		body := b[frameHeader : frameHeader+int(h.length)]
		if crc32.Checksum(body, castagnoli) != h.body {
			return nil
		}
		r.j.tail = max(r.j.tail, h.tail)
		if err := r.records(body, h.position+frameHeader); err != nil {
			return err
		}
		s.used += int64(n)
		r.at = h.end()
	}
}

// records hands the records of a frame to fn, less those that are not wanted.
func (r *replay) records(body []byte, at Position) error {
	return eachRecord(body, at, func(p Position, rec Record) error {
		if p < r.from || p < r.j.tail {
			return nil
		}
		return r.fn(p, rec)
	})
}

// nothingBehind looks for whole headers of later frames behind the end that
// was found: one means that the log was damaged in the middle.
func (r *replay) nothingBehind(last int) error {
	for i := max(last, 0); i < len(r.j.live); i++ {
		s := r.j.live[i]
		off := int64(disk.Block)
		if i == last {
			off = s.used + disk.Block // the torn frame itself may have a whole header
		}
		found, err := r.search(s, off, r.at)
		if err != nil {
			return err
		}
		if found {
			return fault.E(fault.Corrupt, "journal.Replay", s.name(),
				"a frame is damaged that later ones stand behind; restore this node from its peers")
		}
	}
	return nil
}

// search reports whether a segment has, at or behind off, the header of a frame
// that could only be written after the one missing was durable.
func (r *replay) search(s *segment, off int64, end Position) (bool, error) {
	for off < s.bytes {
		n := min(readAhead, s.bytes-off)
		b, err := r.read(s, off, int(n))
		if err != nil {
			return false, err
		}
		for k := int64(0); k < n; k += disk.Block {
			h, ok := decodeFrameHead(b[k:], r.j.key, s.start()+Position(off+k))
			if ok && h.prev > end {
				return true, nil
			}
		}
		off += n
	}
	return false, nil
}
