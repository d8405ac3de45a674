package meta

import (
	"bytes"
	"cmp"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Frozen is the metadata as it was at one moment, for copying a slice to
// another node. It must be closed. One goroutine uses it at a time.
type Frozen struct{ snap *pebble.Snapshot }

// Freeze returns the metadata as it is now.
func (db *DB) Freeze() *Frozen { return &Frozen{snap: db.p.NewSnapshot()} }

// Close lets the state go.
func (f *Frozen) Close() error { return fault.Wrap(fault.IO, "meta.Frozen.Close", "", f.snap.Close()) }

// Row is one row of a slice as it is kept: Area and Key name it, Value has
// whatever the area keeps with it.
type Row struct {
	Area       byte
	Key, Value []byte
}

// Rows returns the rows of a slice behind a row (the zero Row: from the
// start), up to about limit bytes; none are left where it returns none.
func (f *Frozen) Rows(s ids.Slice, behind Row, limit int) ([]Row, error) {
	var out []Row
	for _, area := range [...]byte{areaCurrent, areaHistory, areaPlain} {
		if area < behind.Area {
			continue // the areas' numbers ascend
		}
		from := appendPrefix(nil, area, s)
		if area == behind.Area {
			from = append(append(from, behind.Key...), 0)
		}
		it, err := f.snap.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: after(area, s)})
		if err != nil {
			return nil, fault.Wrap(fault.IO, "meta.Frozen.Rows", "", err)
		}
		for ok := it.First(); ok && limit > 0; ok = it.Next() {
			out = append(out, Row{Area: area, Key: bytes.Clone(it.Key()[prefixLen:]), Value: bytes.Clone(it.Value())})
			limit -= len(it.Key()) + len(it.Value())
		}
		if err := it.Close(); err != nil {
			return nil, fault.Wrap(fault.IO, "meta.Frozen.Rows", "", err)
		}
		if limit <= 0 {
			break
		}
	}
	return out, nil
}

// Place is where Frozen.Rows has the row that a key's newest value is in. It
// shares the key.
func Place(versioned bool, key []byte) Row {
	if versioned {
		return Row{Area: areaCurrent, Key: key}
	}
	return Row{Area: areaPlain, Key: key}
}

// Compare tells which of two rows Frozen.Rows gives first: r if it is negative.
// The zero Row is before all others.
func (r Row) Compare(o Row) int {
	if c := cmp.Compare(r.Area, o.Area); c != 0 {
		return c
	}
	return bytes.Compare(r.Key, o.Key)
}

// Plain reports whether a row is one of the unversioned ones.
func (r *Row) Plain() bool { return r.Area == areaPlain }

// Restore writes a row of Frozen.Rows into a slice that was dropped before, or over what
// is there under its key.
func (b *Batch) Restore(s ids.Slice, r Row) error {
	if r.Area != areaCurrent && r.Area != areaHistory && r.Area != areaPlain {
		return fault.E(fault.Corrupt, "meta.Restore", "", "a row of no known area")
	}
	if _, err := b.rows.write(b.b); err != nil {
		return err
	}
	b.dropped = true // what the cache knows of the slice is void
	return fault.Wrap(fault.IO, "meta.Restore", "", b.b.Set(append(appendPrefix(nil, r.Area, s), r.Key...), r.Value, nil))
}

// Remove removes a row of Frozen.Rows, whatever its area keeps with it.
func (b *Batch) Remove(s ids.Slice, r Row) error {
	if r.Area != areaCurrent && r.Area != areaHistory && r.Area != areaPlain {
		return fault.E(fault.Corrupt, "meta.Remove", "", "a row of no known area")
	}
	if _, err := b.rows.write(b.b); err != nil {
		return err
	}
	b.dropped = true // what the cache knows of the slice is void
	return fault.Wrap(fault.IO, "meta.Remove", "", b.b.Delete(append(appendPrefix(nil, r.Area, s), r.Key...), nil))
}

// RemoveBehind removes all rows of a slice that Frozen.Rows gives behind a row, but the
// unversioned ones whose keys begin with a byte.
func (b *Batch) RemoveBehind(s ids.Slice, behind Row, spared byte) error {
	if _, err := b.rows.write(b.b); err != nil {
		return err
	}
	b.dropped = true
	for _, area := range [...]byte{areaCurrent, areaHistory, areaPlain} {
		if area < behind.Area {
			continue
		}
		from := appendPrefix(nil, area, s)
		if area == behind.Area {
			from = append(append(from, behind.Key...), 0)
		}
		cuts := [][]byte{from, after(area, s)}
		if area == areaPlain {
			prefix := appendPrefix(nil, area, s)
			first, next := append(bytes.Clone(prefix), spared), append(bytes.Clone(prefix), spared+1)
			cuts = [][]byte{from, first, maxKey(from, next), after(area, s)}
		}
		for ; len(cuts) > 0; cuts = cuts[2:] {
			if bytes.Compare(cuts[0], cuts[1]) >= 0 {
				continue
			}
			if err := b.b.DeleteRange(cuts[0], cuts[1], nil); err != nil {
				return fault.Wrap(fault.IO, "meta.RemoveBehind", "", err)
			}
		}
	}
	return nil
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// RemoveMarks removes what a node notes about its own copy of a slice: the serial of the
// last entry that is applied, and the unversioned rows whose keys begin with the byte first.
func (b *Batch) RemoveMarks(s ids.Slice, first byte) error {
	if _, err := b.rows.write(b.b); err != nil {
		return err
	}
	b.dropped = true
	prefix := append(appendPrefix(nil, areaPlain, s), first)
	end := append(appendPrefix(nil, areaPlain, s), first+1)
	err := b.b.DeleteRange(prefix, end, nil)
	if err == nil {
		err = b.b.Delete(appendPrefix(nil, areaApplied, s), nil)
	}
	return fault.Wrap(fault.IO, "meta.RemoveMarks", "", err)
}

// DropCache forgets the values kept in memory, for measurements.
func (db *DB) DropCache() { db.cache.reset() }
