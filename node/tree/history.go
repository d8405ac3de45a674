package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Versions calls fn for the versions of a key, newest first, until it returns false; nil
// says that the key was gone from that time on.
type Versions func(key []byte, fn func(ts uint64, value []byte) bool) error

// EntryVersion is what a name meant from a time on: nothing where Object is 0.
type EntryVersion struct {
	Time hlc.Time
	Entry
}

// EntryHistory returns up to limit versions of a name of a directory, newest first, and
// whether there are more. It ends with the one that was current at a time: of what was
// before, only snapshots have something.
func EntryHistory(v Versions, dir ids.Object, name []byte, since hlc.Time, limit int) (out []EntryVersion, more bool, err error) {
	const op fault.Op = "tree.EntryHistory"
	var bad error
	err = v(nameKey(keyEntry, dir, name), func(ts uint64, value []byte) bool {
		if more = len(out) == limit; more {
			return false
		}
		x := EntryVersion{Time: hlc.Time(ts)}
		if value != nil {
			x.Entry, _, bad = firstEntry(value)
		}
		out = append(out, x)
		return bad == nil && x.Time > since
	})
	if err == nil {
		err = bad
	}
	return out, more, fault.Wrap(fault.IO, op, dir.String(), err)
}

// RecordVersion is an object's record from a time on; nil: it was gone.
type RecordVersion struct {
	Time  hlc.Time
	Inode *Inode
}

// RecordHistory returns up to limit versions of an object's record, newest first, and
// whether there are more. It ends as EntryHistory does.
func RecordHistory(v Versions, o ids.Object, since hlc.Time, limit int) (out []RecordVersion, more bool, err error) {
	const op fault.Op = "tree.RecordHistory"
	var bad error
	err = v(objectKey(keyInode, o), func(ts uint64, value []byte) bool {
		if more = len(out) == limit; more {
			return false
		}
		x := RecordVersion{Time: hlc.Time(ts)}
		if value != nil {
			if x.Inode, bad = DecodeInode(o, value); bad == nil {
				x.Inode.own()
			}
		}
		out = append(out, x)
		return bad == nil && x.Time > since
	})
	if err == nil {
		err = bad
	}
	return out, more, fault.Wrap(fault.IO, op, o.String(), err)
}
