package meta

import (
	"bytes"
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// A reading as of a time sees the newest version at or before it. So of the versions at
// or before a horizon only the newest is of use to readings as of the horizon or later,
// and that not if it says that the key was gone.

// Forget removes the versions of the keys from <= key < to that no reading as of the
// horizon or later sees. The batch must be empty: changes in it are not looked at.
func (b *Batch) Forget(s ids.Slice, from, to []byte, horizon uint64) error {
	if !b.Empty() {
		return fault.E(fault.Invalid, "meta.Forget", "", "a batch that has changes cannot forget versions")
	}
	return b.db.eachStale(s, from, to, horizon, func(_ []byte, stale [][]byte) bool {
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
func (db *DB) FindStale(s ids.Slice, from []byte, horizon uint64, limit int) (Stale, error) {
	out := Stale{From: bytes.Clone(from), Horizon: horizon}
	if from == nil {
		out.From = []byte{}
	}
	keys, whole := 0, true
	err := db.eachStale(s, out.From, nil, horizon, func(key []byte, stale [][]byte) bool {
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
func (db *DB) eachStale(s ids.Slice, from, to []byte, horizon uint64, fn func(key []byte, stale [][]byte) bool) error {
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
		ok = it.SeekGE(appendTime(bytes.Clone(stem), horizon))
		var stale [][]byte
		for first := true; ok && bytes.HasPrefix(it.Key(), stem) && len(it.Key()) == len(stem)+8; ok, first = it.Next(), false {
			if first {
				newest, err := db.isNewestBy(s, key, horizon)
				if err != nil {
					it.Close()
					return err
				}
				if !newest && (len(it.Value()) == 0 || it.Value()[0] != flagGone) {
					continue // the one that is current as of the horizon
				}
			}
			stale = append(stale, bytes.Clone(it.Key()))
		}
		if !fn(key, stale) {
			break
		}
	}
	return fault.Wrap(fault.IO, op, "", it.Close())
}

// isNewestBy reports whether the version of a key that is current now is from the horizon
// or before it.
func (db *DB) isNewestBy(s ids.Slice, key []byte, horizon uint64) (is bool, err error) {
	err = db.peek(s, key, func(raw []byte) { is = len(raw) >= 8 && binary.BigEndian.Uint64(raw) <= horizon })
	return is, err
}
