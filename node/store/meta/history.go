package meta

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Version is one version of a key. It owns its slices.
type Version struct {
	Key  []byte
	Time uint64
	// Gone says that the key was removed at Time; Value is empty then.
	Gone  bool
	Value []byte
}

// History calls fn for the old versions in a slice: those of a key from the newest to the
// oldest, each with the version that replaced it. That one is nil where the key has no newer
// version, as after its removal. An error of fn ends the call.
//
// History handles at most limit rows. It goes on behind the row that an earlier call
// returned as next; a nil next says that there are no more. Where that row is forgotten by
// now, the next version counts as replaced by the current one.
func (db *DB) History(s ids.Slice, behind []byte, limit int, fn func(old Version, replaced *Version) error) (next []byte, err error) {
	const op fault.Op = "meta.History"
	bounds := &pebble.IterOptions{LowerBound: appendPrefix(nil, areaHistory, s), UpperBound: after(areaHistory, s)}
	it, err := db.p.NewIter(bounds)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	defer it.Close()
	ok := it.First()
	var newer *Version
	if len(behind) > 0 {
		from := append(appendPrefix(nil, areaHistory, s), behind...)
		if ok = it.SeekGE(from); ok && bytes.Equal(it.Key(), from) {
			if newer, err = readVersion(it); err != nil {
				return nil, err
			}
			ok = it.Next()
		}
	}
	for n := 0; ok; ok = it.Next() {
		if n++; n > limit {
			return next, nil
		}
		old, err := readVersion(it)
		if err != nil {
			return nil, err
		}
		if newer == nil || !bytes.Equal(newer.Key, old.Key) {
			if newer, err = db.newest(s, old.Key); err != nil {
				return nil, err
			}
		}
		if err := fn(*old, newer); err != nil {
			return nil, err
		}
		newer, next = old, bytes.Clone(it.Key()[prefixLen:])
	}
	return nil, fault.Wrap(fault.IO, op, "", it.Error())
}

// readVersion reads the row of history at which an iterator is.
func readVersion(it *pebble.Iterator) (*Version, error) {
	key, at, ok := splitHistoryKey(it.Key(), nil)
	raw := it.Value()
	if !ok || len(raw) == 0 {
		return nil, fault.E(fault.Corrupt, "meta.History", "", "a damaged version")
	}
	return &Version{Key: key, Time: at, Gone: raw[0] == flagGone, Value: bytes.Clone(raw[1:])}, nil
}

// newest returns the current version of a key, or nil. It leaves the cache as it is.
func (db *DB) newest(s ids.Slice, key []byte) (v *Version, err error) {
	short := false
	err = db.peek(s, key, func(raw []byte) {
		if short = len(raw) < 8; !short {
			v = &Version{Key: key, Time: binary.BigEndian.Uint64(raw), Value: bytes.Clone(raw[8:])}
		}
	})
	if short {
		return nil, fault.E(fault.Corrupt, "meta.History", "", "a value without a time")
	}
	return v, err
}

// peek calls fn with the current version of a key, its time before it, where there is one.
// It is valid only in fn. The cache stays as it is.
func (db *DB) peek(s ids.Slice, key []byte, fn func(raw []byte)) error {
	raw, closer, err := db.p.Get(appendKey(nil, areaCurrent, s, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.IO, "meta.peek", "", err)
	}
	fn(raw)
	return fault.Wrap(fault.IO, "meta.peek", "", closer.Close())
}
