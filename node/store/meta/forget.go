package meta

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// A reading as of a time sees the newest version at or before it. Collection names the
// readings that must stay as they are; a version that none of them sees is of no use. One
// that says that the key was gone is of no use either where no older one of the key stays.

// Retained are the readings of a slice that forgetting must not change.
type Retained struct {
	// Horizon: all readings as of it or later.
	Horizon uint64
	// Keeps: those as of one of these times, which ascend.
	Keeps []uint64
}

// sees reports whether a reading of a kept time sees a version from one time until before
// another.
func (r *Retained) sees(from, until uint64) bool {
	i, _ := slices.BinarySearch(r.Keeps, from)
	return i < len(r.Keeps) && r.Keeps[i] < until
}

// Forget removes the versions of the keys from <= key < to that no retained reading sees.
// The batch must be empty: changes in it are not looked at.
func (b *Batch) Forget(s ids.Slice, from, to []byte, retained Retained) error {
	if !b.Empty() {
		return fault.E(fault.Invalid, "meta.Forget", "", "a batch that has changes cannot forget versions")
	}
	return b.db.eachStale(s, from, to, &retained, func(_ []byte, stale [][]byte) bool {
		for _, full := range stale {
			b.rows.add(row{key: b.rows.copy(full)})
		}
		return true
	})
}

// Stale is a part of a slice in which Forget has something to remove.
type Stale struct {
	From, To []byte // keys
	Horizon  uint64
	Rows     int    // that Forget removes; of a single key it may be one more
	Next     []byte // where the next search begins; nil: there is nothing more
}

// FindStale looks for versions that Forget would remove, from a key on; a nil from is the
// beginning. It stops once limit of them were found, and so bounds what one Forget takes.
// A single key with more gets an earlier horizon.
func (db *DB) FindStale(s ids.Slice, from []byte, retained Retained, limit int) (Stale, error) {
	out := Stale{From: bytes.Clone(from), Horizon: retained.Horizon}
	if from == nil {
		out.From = []byte{}
	}
	keys, whole := 0, true
	err := db.eachStale(s, out.From, nil, &retained, func(key []byte, stale [][]byte) bool {
		keys++
		switch {
		case len(stale) > limit && out.Rows > 0:
			out.To, out.Next, whole = bytes.Clone(key), bytes.Clone(key), false
			return false
		case len(stale) > limit:
			// They are in the order of descending times.
			_, at, _ := splitHistoryKey(stale[len(stale)-limit], nil)
			out.From, out.To, out.Next = bytes.Clone(key), append(bytes.Clone(key), 0), bytes.Clone(key)
			out.Horizon, out.Rows, whole = at, limit-1, false
			return false
		}
		out.Rows += len(stale)
		if out.Rows >= limit || keys >= 8*limit {
			out.To = append(bytes.Clone(key), 0)
			out.Next, whole = out.To, false
		}
		return whole
	})
	if whole {
		out.To = []byte{0xff}
	}
	return out, err
}

// eachStale calls fn for each key with history, with the full keys of those rows that are
// of no use, newest first, until it returns false. What fn is given is its own.
func (db *DB) eachStale(s ids.Slice, from, to []byte, retained *Retained, fn func(key []byte, stale [][]byte) bool) error {
	const op fault.Op = "meta.eachStale"
	it, err := db.p.NewIter(historyBounds(s, from, to))
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	ok := it.First()
	for ok {
		key, _, good := splitHistoryKey(it.Key(), nil)
		if !good {
			it.Close()
			return fault.E(fault.Corrupt, op, "", "a damaged version")
		}
		stem := bytes.Clone(it.Key()[:len(it.Key())-8])
		var old []oldRow
		for ok = it.SeekGE(appendTime(bytes.Clone(stem), retained.Horizon)); ok && bytes.HasPrefix(it.Key(), stem) && len(it.Key()) == len(stem)+8; ok = it.Next() {
			_, at, _ := splitHistoryKey(it.Key(), nil)
			old = append(old, oldRow{bytes.Clone(it.Key()), at, len(it.Value()) > 0 && it.Value()[0] == flagGone})
		}
		var stale [][]byte
		if len(old) > 0 {
			until, err := db.replacedBy(s, key, retained.Horizon)
			if err != nil {
				it.Close()
				return err
			}
			stale = retained.stale(old, until)
		}
		if !fn(key, stale) {
			break
		}
	}
	return fault.Wrap(fault.IO, op, "", it.Close())
}

// oldRow is a version in the history of a key.
type oldRow struct {
	full []byte
	at   uint64
	gone bool // it says that the key was gone
}

// stale returns the full keys of the rows of one key, newest first, that are of no use. All
// are from the horizon or before it. until is when the first was replaced, as replacedBy
// tells it.
func (r *Retained) stale(rows []oldRow, until uint64) (out [][]byte) {
	useful := make([]bool, len(rows))
	for i := range rows {
		useful[i] = until > r.Horizon || r.sees(rows[i].at, until)
		until = rows[i].at
	}
	older := false // an older one stays
	for i := len(rows) - 1; i >= 0; i-- {
		useful[i] = useful[i] && (older || !rows[i].gone)
		older = older || useful[i]
	}
	for i := range rows {
		if !useful[i] {
			out = append(out, rows[i].full)
		}
	}
	return out
}

// replacedBy returns the time of the version of a key that is current now, where that is
// from the horizon or before it. Otherwise the newest old version by the horizon is seen as
// of it, and the time is the latest there is.
func (db *DB) replacedBy(s ids.Slice, key []byte, horizon uint64) (at uint64, err error) {
	at = math.MaxUint64
	err = db.peek(s, key, func(raw []byte) {
		if len(raw) >= 8 && binary.BigEndian.Uint64(raw) <= horizon {
			at = binary.BigEndian.Uint64(raw)
		}
	})
	return at, err
}
