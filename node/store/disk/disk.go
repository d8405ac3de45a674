// Package disk is what the store asks of a file system: a handful of calls,
// each of which that changes something carries the name of the fault site it
// is made at. There are two implementations: Real uses the operating system,
// with direct I/O where the file system has it; Memory keeps files in memory
// and can fail, tear writes, and be cloned as after power loss. It knows
// nothing of what the files hold. Disks and files may be shared by goroutines;
// overlapping writes to one range are the caller's fault.
package disk

import "unsafe"

// Block is the unit of direct I/O: buffers, offsets and lengths of files opened
// with Direct are multiples of it.
const Block = 4096

// Mode says how a file is opened.
type Mode uint8

// The modes; they combine.
const (
	// Create makes the file where it is missing.
	Create Mode = 1 << iota
	// Direct goes past the page cache where the file system can.
	Direct
	// Synced makes every WriteAt durable on return.
	Synced
	// ReadOnly opens for reading alone.
	ReadOnly
)

// Disk is a tree of files below a root. Names are relative, with slashes.
// Errors are faults: NotFound, NoSpace, IO, Invalid.
type Disk interface {
	// Open opens or creates a file.
	Open(site Site, name string, mode Mode) (File, error)
	// Remove deletes a file; durable after SyncDir.
	Remove(site Site, name string) error
	// Rename replaces a file by another; durable after SyncDir.
	Rename(site Site, from, to string) error
	// List names the files of a directory, sorted.
	List(dir string) ([]string, error)
	// MakeDir makes a directory with its parents, durable on return.
	MakeDir(site Site, dir string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(site Site, dir string) error
}

// File is an open file. After a failed Sync, or a failed WriteAt of a Synced
// file, what is on disk is unknown: the caller never tries again.
type File interface {
	// ReadAt fills p, or reads to the end and returns io.EOF.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes all of p or fails.
	WriteAt(site Site, p []byte, off int64) error
	// Sync makes what was written durable.
	Sync(site Site) error
	// Allocate reserves space up to size, so that writes below it find room.
	Allocate(site Site, size int64) error
	// Size returns the length of the file.
	Size() (int64, error)
	Close() error
}

// Usage is the space of the file system below a disk, in bytes.
type Usage struct{ Total, Free int64 }

// Measurer is a Disk that knows its space.
type Measurer interface{ Usage() (Usage, error) }

// Locker is a Disk that can keep a second process out. Lock answers Busy when
// another holds the lock; the file's content then is what its holder wrote.
type Locker interface {
	Lock(name string, content []byte) (unlock func() error, err error)
}

// Aligned returns a buffer of n bytes whose start is fit for direct I/O.
func Aligned(n int) []byte {
	raw := make([]byte, n+Block)
	skip := 0
	if rest := int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % Block); rest != 0 {
		skip = Block - rest
	}
	return raw[skip : skip+n : skip+n]
}

// RoundUp returns n rounded up to whole blocks.
func RoundUp(n int64) int64 { return (n + Block - 1) &^ (Block - 1) }
