package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// Folder is the journal's directory below the data directory.
const Folder = "journal"

const folder = Folder

// segment is one file of the log. Its name says nothing of what it holds now;
// its header does.
type segment struct {
	f        disk.File
	number   int    // of the file name
	claims   bool   // it has a header; a new one has none
	sequence uint64 // which stretch of the log its header says it holds
	bytes    int64
	used     int64 // where the next frame goes; the writer's
}

func (s *segment) name() string { return fmt.Sprintf("%s/%06d.log", folder, s.number) }

// start is the position of the segment's first byte.
func (s *segment) start() Position { return Position(s.sequence * uint64(s.bytes)) }

// load opens every segment file and reads its header.
func (j *Journal) load() error {
	if err := j.d.MakeDir(disk.JournalDir, folder); err != nil {
		return err
	}
	names, err := j.d.List(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		number := 0
		if _, err := fmt.Sscanf(name, "%06d.log", &number); err != nil || !strings.HasSuffix(name, ".log") {
			continue
		}
		j.making.next = max(j.making.next, number)
		if err := j.loadSegment(number); err != nil {
			return err
		}
	}
	slices.SortFunc(j.live, func(a, b *segment) int { return cmp.Compare(a.sequence, b.sequence) })
	j.dropTrimmedLocked()
	return nil
}

func (j *Journal) loadSegment(number int) error {
	s := &segment{number: number}
	f, err := j.d.Open(disk.JournalOpen, s.name(), mode())
	if err != nil {
		return err
	}
	s.f = f
	if s.bytes, err = f.Size(); err != nil {
		f.Close()
		return err
	}
	block := disk.Aligned(disk.Block)
	if s.bytes < j.opts.SegmentBytes {
		// Made, but not filled before a crash: fill it again before use.
		f.Close()
		return j.d.Remove(disk.JournalOpen, s.name())
	}
	if _, err := f.ReadAt(block, 0); err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return fault.Wrap(fault.IO, "journal.Open", s.name(), err)
	}
	h, ok, err := decodeSegmentHead(block, s.name())
	switch {
	case err != nil:
		f.Close()
		return err
	case !ok:
		j.free = append(j.free, s)
	case h.bytes != s.bytes || j.key != 0 && j.key != h.key:
		f.Close()
		return fault.E(fault.Corrupt, "journal.Open", s.name(), "segments of different journals")
	default:
		s.claims, s.sequence = true, h.sequence
		j.key = h.key
		j.tail = max(j.tail, h.tail)
		j.live = append(j.live, s)
	}
	return nil
}

// dropTrimmedLocked frees the segments that end before the tail. Callers hold mu or
// are alone.
func (j *Journal) dropTrimmedLocked() {
	keep := j.live[:0]
	for i, s := range j.live {
		if i < len(j.live)-1 && j.live[i+1].start() <= j.tail {
			j.free = append(j.free, s)
			continue
		}
		keep = append(keep, s)
	}
	clear(j.live[len(keep):])
	j.live = keep
}

// Trim declares the records before a position superfluous; their segments are
// used again. The header of the next frame or segment carries it to the disk,
// so that a crash before that replays more than it must, never less.
func (j *Journal) Trim(before Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if before > j.end {
		return fault.E(fault.Invalid, "journal.Trim", "", "beyond the end of the log")
	}
	j.tail = max(j.tail, before)
	j.dropTrimmedLocked()
	if len(j.free) > 0 {
		j.short = nil
	}
	j.lookAgain()
	return nil
}

// obtain returns a segment fit for the frames of a stretch: a used one, or a new
// file.
func (j *Journal) obtain(sequence uint64) (*segment, error) {
	j.mu.Lock()
	if i := j.reusedLocked(sequence); i >= 0 {
		s := j.free[i]
		j.free = slices.Delete(j.free, i, i+1)
		j.mu.Unlock()
		return s, nil
	}
	total := int64(len(j.live)+1) * j.opts.SegmentBytes
	j.mu.Unlock()
	if total > j.opts.TotalBytes {
		return nil, atLimit()
	}
	return j.create()
}

// reusedLocked picks the free segment whose header is best lost, should the writing of
// the new one fail: one that claims the same stretch, or a later one, and else the
// oldest. The chain of those that the disk still shows as live must get no hole,
// and no stretch may be claimed twice. It returns -1 where none is free; callers
// hold mu.
func (j *Journal) reusedLocked(sequence uint64) int {
	best := -1
	for i, s := range j.free {
		switch {
		case s.claims && s.sequence == sequence:
			return i
		case best < 0, s.sequence > j.free[best].sequence && s.sequence > sequence,
			s.sequence < j.free[best].sequence && j.free[best].sequence < sequence:
			best = i
		}
	}
	return best
}
