package meta

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Newest is the time that stands for the current versions.
const Newest = ^uint64(0)

// View reads one slice, its current versions or those of a time. It is a small
// value that stays good as long as the DB is open.
type View struct {
	db    *DB
	slice ids.Slice
	at    uint64
}

// Slice returns the view of a slice's current versions.
func (db *DB) Slice(s ids.Slice) View { return View{db: db, slice: s, at: Newest} }

// SliceAt returns the view of a slice as it was at a time, that of a version
// included.
func (db *DB) SliceAt(s ids.Slice, ts uint64) View { return View{db: db, slice: s, at: ts} }

// Get returns the value of a key. The caller must not change it.
func (v View) Get(key []byte) (value []byte, ok bool, err error) {
	value, _, ok, err = v.GetTime(key)
	return value, ok, err
}

// GetTime is Get with the time of the version.
func (v View) GetTime(key []byte) (value []byte, ts uint64, ok bool, err error) {
	var space [128]byte
	full := appendKey(space[:0], areaCurrent, v.slice, key)
	cur, err := v.db.current(full)
	if err != nil {
		return nil, 0, false, err
	}
	if cur != nil {
		if ts := binary.BigEndian.Uint64(cur); ts <= v.at {
			return cur[8:], ts, true, nil
		}
	}
	if v.at == Newest {
		return nil, 0, false, nil
	}
	return v.db.older(v.slice, key, v.at)
}

// current returns the newest version with its time before it, or nil.
func (db *DB) current(full []byte) ([]byte, error) {
	shard := db.cache.shard(full)
	value, known, gen := shard.get(full)
	if known {
		return value, nil
	}
	raw, closer, err := db.p.Get(full)
	if errors.Is(err, pebble.ErrNotFound) {
		shard.put(full, nil, gen)
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.IO, "meta.Get", "", err)
	}
	value = bytes.Clone(raw)
	closer.Close()
	if len(value) < 8 {
		return nil, fault.E(fault.Corrupt, "meta.Get", "", "a value without a time")
	}
	shard.put(full, value, gen)
	return value, nil
}

// older finds the version of a key that was current at a time, in history.
func (db *DB) older(s ids.Slice, key []byte, at uint64) ([]byte, uint64, bool, error) {
	lower := appendHistoryKey(nil, s, key)
	end := bytes.Clone(lower)
	end[len(end)-1]++
	it, err := db.p.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: end})
	if err != nil {
		return nil, 0, false, fault.Wrap(fault.IO, "meta.Get", "", err)
	}
	defer it.Close()
	if !it.SeekGE(appendTime(bytes.Clone(lower), at)) {
		return nil, 0, false, fault.Wrap(fault.IO, "meta.Get", "", it.Error())
	}
	_, ts, ok := splitHistoryKey(it.Key(), nil)
	raw := it.Value()
	if !ok || len(raw) < 1 {
		return nil, 0, false, fault.E(fault.Corrupt, "meta.Get", "", "a damaged version")
	}
	if raw[0] == flagGone {
		return nil, 0, false, nil
	}
	return bytes.Clone(raw[1:]), ts, true, nil
}

// Plain returns an unversioned row. The caller owns the value.
func (db *DB) Plain(s ids.Slice, key []byte) ([]byte, bool, error) {
	var space [128]byte
	raw, closer, err := db.p.Get(appendKey(space[:0], areaPlain, s, key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fault.Wrap(fault.IO, "meta.Plain", "", err)
	}
	defer closer.Close()
	return bytes.Clone(raw), true, nil
}
