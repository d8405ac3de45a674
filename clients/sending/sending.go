// Package sending copies a snapshot out of a cluster and back: Send writes what a mount shows
// below .Snapshot as one stream, or the difference of two snapshots, and Receive makes a tree
// of such streams. Both work on paths as any program does, with the rights of their caller,
// and know nothing of nodes. docs/formats/sent.md has the stream byte by byte. Neither keeps
// more in memory than the names of the directories on the way to where it is, and the files
// with several names of which it has not met all. Both are functions without state of their
// own and may be called at once, on different places.
package sending

import (
	"strings"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

const (
	// magic begins a stream; its last byte is the version.
	magic = "cartwheel sent 1"
	// pieceBytes is the length of a piece of a file. Pieces begin at its multiples, and one
	// of zeros alone is a hole.
	pieceBytes = 64 << 10
	// keptBytes bounds a range that a receiver takes from what it has.
	keptBytes = 64 << 20
	// maxBody bounds the body of a record: a path, a target and all extended attributes.
	maxBody = 1 << 20
	// sumBytes of the running sum stand behind each record.
	sumBytes = 16
	// maxLinked bounds the files with several names whose other names were not met yet.
	maxLinked = 1 << 20
)

// Header says what a stream is of.
type Header struct {
	// Name is the snapshot's name or its time, as the sender gave it.
	Name string   `json:"name"`
	Time hlc.Time `json:"hlc"`
	// Object is what was at the path.
	Object ids.Object `json:"object"`
	// Base is the snapshot that a difference counts from; empty: the stream is the whole.
	Base       string     `json:"base,omitempty"`
	BaseTime   hlc.Time   `json:"base_hlc,omitempty"`
	BaseObject ids.Object `json:"base_object,omitempty"`
	// Path is where it was from the root of the tree on, for people.
	Path string `json:"path"`
	// Names is how many names the tree has in the snapshot, itself included.
	Names uint64 `json:"names"`
}

// isDifference reports whether the stream needs a copy of its base.
func (h *Header) isDifference() bool { return h.BaseTime != 0 }

// same reports whether two headers are of one stream.
func (h *Header) same(o *Header) bool {
	return h.Time == o.Time && h.Object == o.Object && h.BaseTime == o.BaseTime && h.BaseObject == o.BaseObject
}

// what names a stream for people.
func (h *Header) what() string {
	if h.isDifference() {
		return h.Name + " since " + h.Base
	}
	return h.Name
}

// Progress is how far a sending or a receiving is. The functions of this package add to it,
// and others may read it meanwhile.
type Progress struct {
	Names, Bytes atomic.Int64
	// Of is how many names there are; 0: not known yet.
	Of atomic.Int64
}

// Types of what a name means, as stat has them.
const (
	typeMask    = 0o170000
	typeDir     = 0o040000
	typeRegular = 0o100000
	typeLink    = 0o120000
)

// object is the record of one name.
type object struct {
	path string
	// whole: it is made anew, and its content follows. Otherwise it is there, and its
	// attributes change.
	whole    bool
	was      *was
	mode     uint32 // with the type, as stat has it
	uid, gid uint32
	mtime    int64 // ns since 1970
	size     uint64
	device   uint64
	target   string
	xattrs   []xattr
}

func (o *object) isDir() bool     { return o.mode&typeMask == typeDir }
func (o *object) isRegular() bool { return o.mode&typeMask == typeRegular }

// was is what a receiver has under a name before a difference.
type was struct {
	kind  uint32 // the type, as stat has it
	size  uint64
	mtime int64
}

// xattr is an extended attribute.
type xattr struct {
	name  string
	value []byte
}

// removed is the record of a name that is no more.
type removed struct {
	path string
	was  was
}

// link is the record of a further name of a file.
type link struct {
	path, first string
	was         *was
}

// isPath reports whether a path may stand in a stream: it leads down, and to one place.
func isPath(p string) bool {
	if p == "" {
		return true
	}
	if strings.ContainsRune(p, 0) {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}

// before compares paths by the order of a walk: a directory first, then what is in it, by
// the bytes of the names.
func before(a, b string) bool {
	return strings.ReplaceAll(a, "/", "\x00") < strings.ReplaceAll(b, "/", "\x00")
}

// isBelow reports whether a path is in a directory, or below it.
func isBelow(path, dir string) bool {
	return dir == "" && path != "" || strings.HasPrefix(path, dir+"/")
}

// order holds a stream's paths to the order of a walk. A name may come twice: as that of a
// directory that is removed, and after all below it, of what takes its place.
type order struct {
	Any  bool   `json:"any,omitempty"` // there was a path
	Last []byte `json:"last,omitempty"`
	// Removed is the name that was removed last, with all below it.
	Removed  []byte `json:"removed,omitempty"`
	Removing bool   `json:"removing,omitempty"`
}

// next takes the path of a record.
func (o *order) next(path string, isRemoval bool) error {
	replaces := !isRemoval && o.Removing && path == string(o.Removed)
	if o.Any && !replaces && !before(string(o.Last), path) {
		return fault.E(fault.Corrupt, "sending.next", path, "the names of the stream are not in their order")
	}
	if !isRemoval || !o.Removing || !isBelow(path, string(o.Removed)) {
		o.Removed, o.Removing = []byte(path), isRemoval
	}
	o.Any, o.Last = true, []byte(path)
	return nil
}
