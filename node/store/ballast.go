package store

import (
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/store/disk"
)

// ballastName is a file whose space is given back when the disk is full, so that
// the metadata can be flushed and committed chunks be written: deletions go on.
const ballastName = "ballast"

// startPart is the part of the ballast that stays for a start on a full disk.
const startPart = 16

// ballast is that file.
type ballast struct {
	d     disk.Disk
	bytes int64

	mu      sync.Mutex // guards the file, and:
	started bool
}

// relieve gives back what there is: before the start is over all, then all but
// what the next start needs.
func (b *ballast) relieve() {
	if b.bytes <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := int64(0)
	if b.started {
		keep = disk.RoundUp(b.bytes / startPart)
	}
	if size, err := b.sizeLocked(); err != nil || size <= keep {
		return
	}
	// What fails here leaves the disk as full as it is, which its users see.
	_ = b.d.Remove(disk.BallastOpen, ballastName)
	if keep > 0 {
		_ = b.make(keep)
	}
}

// sizeLocked returns the length of the file, 0 if there is none. Callers hold mu.
func (b *ballast) sizeLocked() (int64, error) {
	f, err := b.d.Open(disk.BallastOpen, ballastName, disk.ReadOnly)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

func (b *ballast) make(size int64) error {
	f, err := b.d.Open(disk.BallastOpen, ballastName, disk.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Allocate(disk.BallastAllocate, size)
}

// restore makes the ballast whole where the disk has room for it twice.
func (b *ballast) restore(free int64) error {
	if b.bytes <= 0 || free < 2*b.bytes {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if size, err := b.sizeLocked(); err != nil || size >= b.bytes {
		return err
	}
	return b.make(b.bytes)
}

// opened says that the start is over.
func (b *ballast) opened() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = true
}
