package journal

import (
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/store/disk"
)

// zeroPiece is how much of a new segment one write fills.
const zeroPiece = 1 << 20

// creator makes segment files; the writer and the preparer share it.
type creator struct {
	mu   sync.Mutex // guards next; held across the making of one file
	next int
}

// create makes a segment and writes all of it once, so that later writes
// change no metadata of the file system and a synced write is one disk write.
func (j *Journal) create() (*segment, error) {
	j.making.mu.Lock()
	defer j.making.mu.Unlock()
	j.making.next++
	s := &segment{number: j.making.next, bytes: j.opts.SegmentBytes}
	fill, err := j.d.Open(disk.JournalOpen, s.name(), disk.Create|disk.Direct)
	if err != nil {
		return nil, err
	}
	err = j.fill(fill, s.bytes)
	fill.Close()
	if err == nil {
		err = j.d.SyncDir(disk.JournalSyncDir, folder)
	}
	if err == nil {
		s.f, err = j.d.Open(disk.JournalOpen, s.name(), mode())
	}
	if err != nil {
		// Best effort: a file left behind is taken up or removed at the next start.
		_ = j.d.Remove(disk.JournalOpen, s.name())
		return nil, fault.Wrap(fault.IO, "journal.Append", s.name(), err)
	}
	return s, nil
}

func (j *Journal) fill(f disk.File, size int64) error {
	if err := f.Allocate(disk.JournalAllocate, size); err != nil {
		return err
	}
	zeros := disk.Aligned(int(min(zeroPiece, size)))
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if err := f.WriteAt(disk.JournalZero, zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return f.Sync(disk.JournalSync)
}

// prepareSpares keeps one segment ready, so that the writer does not wait for
// the making of one.
func (j *Journal) prepareSpares() {
	defer close(j.ready)
	for range j.prepare {
		j.mu.Lock()
		enough := len(j.free) > 0 || j.closed || j.failed != nil ||
			int64(len(j.live)+1)*j.opts.SegmentBytes > j.opts.TotalBytes
		j.mu.Unlock()
		if enough {
			continue
		}
		s, err := j.create()
		j.mu.Lock()
		if j.short = err; err == nil { // else the writer meets the same error when it needs the segment
			j.free = append(j.free, s)
		}
		j.mu.Unlock()
		switch {
		case err == nil:
			j.lookAgain()
		case fault.Is(err, fault.NoSpace):
			j.opts.Relieve()
		}
	}
}

// closeFiles closes every segment's file.
func (j *Journal) closeFiles() {
	for _, s := range append(append([]*segment(nil), j.live...), j.free...) {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// mode is how segments are opened.
func mode() disk.Mode {
	if plant.On(plant.JournalUnsynced) {
		return disk.Direct
	}
	return disk.Direct | disk.Synced
}
