package tree

import (
	"bytes"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

// What holds the space of a slice is told by its rows. Rows of references tell of chunks:
// a chunk that a current file names has a count, also one of a content that was dropped as
// a whole and is not walked yet. A chunk that only other older versions use has a count of
// zero. The history of records tells of versions. The horizon
// divides what is retained from what collection may take.

// Usage is what a part of a slice's rows holds. Sizes are in bytes.
type Usage struct {
	// Named are the chunks of current files, and of contents that are not walked yet.
	// Repeated is what more they would take if each mention were stored.
	Named    Amount `json:"named"`
	Repeated uint64 `json:"repeated_bytes"`
	// Older are the chunks that only older versions use, and Waiting those that no
	// version needs which is retained.
	Older   Amount `json:"older"`
	Waiting Amount `json:"waiting"`
	// Snapshots are those of Older that nothing needs but snapshots.
	Snapshots Amount `json:"snapshots"`
	// Missing counts the chunks that have a row and are not here.
	Missing uint64 `json:"missing"`
	// Deleted and Replaced are the deleted files and the older versions of files that are
	// retained, with their content as if none of it were shared.
	Deleted  Amount `json:"deleted_files"`
	Replaced Amount `json:"older_versions"`
	// OldRows are the rows of all old versions, names and attributes included.
	OldRows Amount `json:"old_rows"`
	// Unwalked counts the contents that were deleted or replaced as a whole, whose chunks
	// are among the named ones. WaitingWalks are those of them that collection may take.
	Unwalked     uint64 `json:"uncollected_contents"`
	WaitingWalks uint64 `json:"waiting_contents"`
}

// Amount is how many there are of something, and their size.
type Amount struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

func (c *Amount) add(bytes uint64) {
	c.Count++
	c.Bytes += bytes
}

// Add adds what another part holds.
func (u *Usage) Add(o *Usage) {
	for _, x := range [...]struct{ to, from *Amount }{
		{&u.Named, &o.Named}, {&u.Older, &o.Older}, {&u.Waiting, &o.Waiting}, {&u.Snapshots, &o.Snapshots},
		{&u.Deleted, &o.Deleted}, {&u.Replaced, &o.Replaced}, {&u.OldRows, &o.OldRows},
	} {
		x.to.Count += x.from.Count
		x.to.Bytes += x.from.Bytes
	}
	u.Repeated += o.Repeated
	u.Missing += o.Missing
	u.Unwalked += o.Unwalked
	u.WaitingWalks += o.WaitingWalks
}

// AddRefs adds the rows of references behind an address, at most limit. length tells the
// stored length of a chunk. last is where the next call goes on; zero: there are no more.
func (u *Usage) AddRefs(v View, behind chunk.Address, horizon hlc.Time, keeps []hlc.Time, limit int, length func(chunk.Address) (int, bool)) (last chunk.Address, err error) {
	var bad error
	seen, more := 0, false
	err = v.Scan(append(refsKey(&behind), 0), []byte{keyRefs + 1}, func(key, value []byte) bool {
		if more = seen == limit; more {
			return false
		}
		seen++
		var refs Refs
		if refs, bad = DecodeRefs(value); bad != nil {
			return false
		}
		last = chunk.Address(key[1:])
		n, here := length(last)
		u.addRefs(refs, horizon, keeps, uint64(n), here)
		return true
	})
	if err == nil {
		err = bad
	}
	if !more {
		last = chunk.Address{}
	}
	return last, fault.Wrap(fault.IO, "tree.AddRefs", "", err)
}

func (u *Usage) addRefs(refs Refs, horizon hlc.Time, keeps []hlc.Time, bytes uint64, here bool) {
	switch {
	case !here:
		u.Missing++
	case refs.Count > 0:
		u.Named.add(bytes)
		u.Repeated += (refs.Count - 1) * bytes
	case refs.Time > horizon:
		u.Older.add(bytes)
	case Keep(keeps, refs.Since, refs.Time):
		u.Older.add(bytes)
		u.Snapshots.add(bytes)
	default:
		u.Waiting.add(bytes)
	}
}

// AddDead adds the dead manifests behind a key, at most limit; a nil key is the beginning.
// last is where the next call goes on; nil: there are no more.
func (u *Usage) AddDead(v View, behind []byte, horizon hlc.Time, keeps []hlc.Time, limit int) (last []byte, err error) {
	from := []byte{keyDead}
	if behind != nil {
		from = append(bytes.Clone(behind), 0)
	}
	var bad error
	seen, more := 0, false
	err = v.Scan(from, []byte{keyDead + 1}, func(key, value []byte) bool {
		if more = seen == limit; more {
			return false
		}
		seen++
		u.Unwalked++
		var d Dead
		if d, bad = decodeDead(key, value); bad != nil {
			return false
		}
		if d.Time <= horizon && !Keep(keeps, d.Since, d.Time) {
			u.WaitingWalks++
		}
		last = append(last[:0], key...)
		return true
	})
	if err == nil {
		err = bad
	}
	if !more {
		last = nil
	}
	return last, fault.Wrap(fault.IO, "tree.AddDead", "", err)
}

// IsDead reports whether a key is that of a dead manifest, as AddDead returns it.
func IsDead(key []byte) bool {
	_, ok := deadTime(key)
	return ok
}

// Old is a version that was replaced at Until, or the note that a key was removed. By is
// what replaced it, nil where the key was removed. Until is 0 where nothing replaced it.
type Old struct {
	Key, Value, By []byte
	Gone           bool
	Until          hlc.Time
}

// AddOld adds a version that is not current.
func (u *Usage) AddOld(o *Old, horizon hlc.Time) error {
	u.OldRows.add(uint64(len(o.Key) + len(o.Value)))
	if o.Gone || len(o.Key) != 9 || o.Key[0] != keyInode || o.Until <= horizon {
		return nil
	}
	was, err := DecodeInode(objectOf(o.Key), o.Value)
	if err != nil || !was.IsRegular() {
		return err
	}
	if o.By == nil {
		u.Deleted.add(was.Stored)
		return nil
	}
	is, err := DecodeInode(was.Object, o.By)
	if err == nil && is.Version != was.Version && was.Size > 0 { // a new file is empty at first
		u.Replaced.add(was.Stored)
	}
	return err
}
