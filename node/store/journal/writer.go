package journal

import (
	"hash/crc32"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// keepBuffer is the largest frame buffer that stays with the writer.
const keepBuffer = 8 << 20

// writer is the state of the writer goroutine.
type writer struct {
	buf   []byte    // aligned
	batch []request // what the frame in hand holds
	at    *segment  // where frames go now
	prev  Position  // end of the last frame
}

// run takes everything queued, writes it as one frame, and says so, until the
// journal is closed and empty.
func (j *Journal) run() {
	defer close(j.stopped)
	for {
		batch, bytes := j.take()
		if batch == nil {
			return
		}
		at, err := j.write(batch, bytes)
		for lacksRoom(err) && j.awaitRoom(err) { // nothing was written yet
			at, err = j.write(batch, bytes)
		}
		if lacksRoom(err) {
			for _, r := range batch {
				r.done(0, fault.Wrap(fault.Closed, "journal.Append", "", &fault.Error{Kind: fault.Closed, Cause: err}))
			}
			continue
		}
		if err != nil {
			j.fail(err, batch)
			continue
		}
		at += frameHeader
		for _, r := range batch {
			r.done(at, nil)
			at += Position(r.bytes)
		}
		clear(batch)
	}
}

// lacksRoom reports whether a write failed before it changed anything, for want
// of a segment.
func lacksRoom(err error) bool {
	return err != nil && (fault.Is(err, fault.NoSpace) || fault.Is(err, fault.Overloaded))
}

// roomEvery is how often a writer without room looks again by itself.
const roomEvery = 100 * time.Millisecond

// awaitRoom returns when it is worth to look for a segment again; false: the
// journal closes, and what waits was never written.
func (j *Journal) awaitRoom(why error) bool {
	j.mu.Lock()
	j.short = why
	closed := j.closed
	j.mu.Unlock()
	if fault.Is(why, fault.NoSpace) {
		j.opts.Relieve()
	}
	if closed {
		return false
	}
	timer := time.NewTimer(roomEvery)
	defer timer.Stop()
	select {
	case <-j.roomy:
	case <-timer.C:
	}
	return true
}

// lookAgain lets a writer without room look for some.
func (j *Journal) lookAgain() {
	select {
	case j.roomy <- struct{}{}:
	default:
	}
}

// take waits for work and removes one batch from the queue; nil means the end.
func (j *Journal) take() ([]request, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) == 0 {
		if j.closed {
			return nil, 0
		}
		j.wake.Wait()
	}
	n, bytes := 0, 0
	for n < len(j.queue) && (n == 0 || bytes+j.queue[n].bytes <= j.opts.BatchBytes) {
		bytes += j.queue[n].bytes
		n++
	}
	if n == len(j.queue) { // the two slices change places
		j.w.batch, j.queue = j.queue, j.w.batch[:0]
	} else {
		j.w.batch = append(j.w.batch[:0], j.queue[:n]...)
		rest := copy(j.queue, j.queue[n:])
		clear(j.queue[rest:])
		j.queue = j.queue[:rest]
	}
	j.queued -= bytes
	return j.w.batch, bytes
}

// write frames a batch and writes it; it returns the frame's position.
func (j *Journal) write(batch []request, bytes int) (Position, error) {
	total := int(disk.RoundUp(int64(frameHeader + bytes)))
	seg, err := j.room(total)
	if err != nil {
		return 0, err
	}
	if cap(j.w.buf) < total {
		j.w.buf = disk.Aligned(max(total, 1<<20))
	}
	b := j.w.buf[:frameHeader]
	for i := range batch {
		for k := range batch[i].records {
			b = appendRecord(b, &batch[i].records[k])
		}
	}
	clear(b[len(b):total])
	j.mu.Lock()
	tail := j.tail
	j.mu.Unlock()
	head := frameHead{position: seg.start() + Position(seg.used), prev: j.w.prev, tail: tail,
		length: uint32(bytes), body: crc32.Checksum(b[frameHeader:], castagnoli)}
	head.encode(b, j.key)
	if err := seg.f.WriteAt(disk.JournalAppend, b[:total], seg.used); err != nil {
		return 0, finalFault(err)
	}
	if cap(j.w.buf) > keepBuffer {
		j.w.buf = nil
	}
	seg.used += int64(total)
	j.w.prev = head.end()
	j.mu.Lock()
	j.end = j.w.prev
	j.left = seg.bytes - seg.used
	j.mu.Unlock()
	return head.position, nil
}

// finalFault is what a failed write becomes: its kind is always IO, because
// what the disk holds now is unknown.
func finalFault(err error) error {
	return &fault.Error{Kind: fault.IO, Op: "journal.Append",
		Public: "the log could not be written: this process must stop acknowledging and restart", Cause: err}
}

// room returns the segment for the next frame of n bytes, going on to a new
// one where the current is full.
func (j *Journal) room(n int) (*segment, error) {
	if s := j.w.at; s != nil && s.used+int64(n) <= s.bytes {
		return s, nil
	}
	next := uint64(0)
	if j.w.at != nil {
		next = j.w.at.sequence + 1
	} else {
		next = (uint64(j.w.prev) + uint64(j.opts.SegmentBytes) - 1) / uint64(j.opts.SegmentBytes)
	}
	s, err := j.obtain(next)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	head := segmentHead{key: j.key, sequence: next, bytes: s.bytes, tail: j.tail}
	j.mu.Unlock()
	block := disk.Aligned(disk.Block)
	head.encode(block)
	if err := s.f.WriteAt(disk.JournalHeader, block, 0); err != nil {
		return nil, finalFault(err)
	}
	s.claims, s.sequence, s.used = true, next, disk.Block
	j.mu.Lock()
	j.live = append(j.live, s)
	j.left, j.short = s.bytes-s.used, nil
	spare := len(j.free)
	j.mu.Unlock()
	j.w.at = s
	if spare == 0 {
		j.Prepare()
	}
	return s, nil
}
