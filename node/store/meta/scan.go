package meta

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// bounds returns the full keys that limit from <= key < to in an area; a nil to
// is the end of the slice.
func bounds(area byte, s ids.Slice, from, to []byte) *pebble.IterOptions {
	o := &pebble.IterOptions{LowerBound: appendKey(nil, area, s, from)}
	if to == nil {
		o.UpperBound = after(area, s)
	} else {
		o.UpperBound = appendKey(nil, area, s, to)
	}
	return o
}

// Scan calls fn for the keys from <= key < to in order, until it returns false;
// a nil to is the end. It sees one state of the DB. Key and value are valid only
// in fn.
func (v View) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	if v.at != Newest {
		return v.scanAt(from, to, fn)
	}
	it, err := v.db.p.NewIter(bounds(areaCurrent, v.slice, from, to))
	if err != nil {
		return fault.Wrap(fault.IO, "meta.Scan", "", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		raw := it.Value()
		if len(raw) < 8 {
			it.Close()
			return fault.E(fault.Corrupt, "meta.Scan", "", "a value without a time")
		}
		if !fn(it.Key()[prefixLen:], raw[8:]) {
			break
		}
	}
	return fault.Wrap(fault.IO, "meta.Scan", "", it.Close())
}

// ScanPlain is Scan over the unversioned rows of a slice.
func (db *DB) ScanPlain(s ids.Slice, from, to []byte, fn func(key, value []byte) bool) error {
	it, err := db.p.NewIter(bounds(areaPlain, s, from, to))
	if err != nil {
		return fault.Wrap(fault.IO, "meta.ScanPlain", "", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if !fn(it.Key()[prefixLen:], it.Value()) {
			break
		}
	}
	return fault.Wrap(fault.IO, "meta.ScanPlain", "", it.Close())
}

// scanAt merges what is current and old enough with what history had then.
func (v View) scanAt(from, to []byte, fn func(key, value []byte) bool) error {
	snap := v.db.p.NewSnapshot()
	defer snap.Close()
	cur, err := snap.NewIter(bounds(areaCurrent, v.slice, from, to))
	if err != nil {
		return fault.Wrap(fault.IO, "meta.Scan", "", err)
	}
	defer cur.Close()
	old, err := snap.NewIter(historyBounds(v.slice, from, to))
	if err != nil {
		return fault.Wrap(fault.IO, "meta.Scan", "", err)
	}
	defer old.Close()
	m := merge{at: v.at, cur: cur, old: old}
	m.nextCurrent(cur.First())
	m.nextOld(old.First())
	for m.curKey != nil || m.oldKey != nil {
		c := order(m.curKey, m.oldKey)
		// A key in both is current now but was not then, or has older
		// versions that no longer count: the current one, if old enough, wins.
		if c <= 0 {
			if !fn(m.curKey, m.curValue) {
				return nil
			}
		} else if !fn(m.oldKey, m.oldValue) {
			return nil
		}
		if c <= 0 {
			m.nextCurrent(cur.Next())
		}
		if c >= 0 {
			m.nextOld(old.Next())
		}
	}
	if err := cur.Error(); err != nil {
		return fault.Wrap(fault.IO, "meta.Scan", "", err)
	}
	return fault.Wrap(fault.IO, "meta.Scan", "", old.Error())
}

// order compares keys; nil, the end, is behind all.
func order(a, b []byte) int {
	switch {
	case b == nil:
		return -1
	case a == nil:
		return 1
	}
	return bytes.Compare(a, b)
}

func historyBounds(s ids.Slice, from, to []byte) *pebble.IterOptions {
	trim := func(k []byte) []byte { return k[:len(k)-2] } // without the end mark
	o := &pebble.IterOptions{LowerBound: trim(appendHistoryKey(nil, s, from))}
	if to == nil {
		o.UpperBound = after(areaHistory, s)
	} else {
		o.UpperBound = trim(appendHistoryKey(nil, s, to))
	}
	return o
}

// merge is the state of scanAt: on each side the next key that existed at the
// time, nil at the end.
type merge struct {
	at       uint64
	cur, old *pebble.Iterator

	curKey, curValue []byte
	oldKey, oldValue []byte
	seen             []byte // the history key whose version was decided
}

// nextCurrent goes on to a current version that is old enough.
func (m *merge) nextCurrent(ok bool) {
	for ; ok; ok = m.cur.Next() {
		raw := m.cur.Value()
		if len(raw) >= 8 && binary.BigEndian.Uint64(raw) <= m.at {
			m.curKey, m.curValue = append(m.curKey[:0], m.cur.Key()[prefixLen:]...), raw[8:]
			if m.curKey == nil {
				m.curKey = []byte{}
			}
			return
		}
	}
	m.curKey = nil
}

// nextOld goes on to the next key in history that existed at the time: its
// first version that is old enough decides.
func (m *merge) nextOld(ok bool) {
	for ; ok; ok = m.old.Next() {
		full := m.old.Key()
		stem := full[:len(full)-8]
		if bytes.Equal(stem, m.seen) {
			continue
		}
		key, ts, good := splitHistoryKey(full, nil)
		if !good || ts > m.at {
			continue
		}
		m.seen = append(m.seen[:0], stem...)
		if raw := m.old.Value(); len(raw) > 0 && raw[0] == flagValue {
			if key == nil {
				key = []byte{}
			}
			m.oldKey, m.oldValue = key, raw[1:]
			return
		}
	}
	m.oldKey = nil
}
