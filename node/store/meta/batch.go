package meta

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Batch collects changes over any slices that are applied together or not at
// all. One goroutine owns a batch; keys and values are copied as they come in.
// Times must not fall for one key.
type Batch struct {
	db      *DB
	b       *pebble.Batch
	rows    *rows // what b does not have yet; nil once the batch has ended
	dropped bool
	scratch []byte
}

// NewBatch starts a batch.
func (db *DB) NewBatch() *Batch {
	r, ok := db.spare.Get().(*rows)
	if !ok {
		r = newRows()
	}
	return &Batch{db: db, b: db.p.NewBatch(), rows: r}
}

// Put makes value the newest version of a key; the one before moves to history.
func (b *Batch) Put(s ids.Slice, key, value []byte, ts uint64) error {
	full := appendKey(b.scratch[:0], areaCurrent, s, key)
	b.scratch = full
	old, err := b.current(full)
	if err != nil {
		return err
	}
	stamped := make([]byte, 8, 8+len(value))
	binary.BigEndian.PutUint64(stamped, ts)
	stamped = append(stamped, value...)
	b.rows.note(full, stamped)
	if old != nil {
		b.keep(s, key, old, ts)
	}
	return nil
}

// Delete removes a key as of a time; its versions stay in history.
func (b *Batch) Delete(s ids.Slice, key []byte, ts uint64) error {
	full := appendKey(b.scratch[:0], areaCurrent, s, key)
	b.scratch = full
	old, err := b.current(full)
	if err != nil || old == nil {
		return err
	}
	b.rows.note(full, nil)
	b.keep(s, key, old, ts)
	b.rows.add(row{key: b.historyKey(s, key, ts), value: b.rows.copy([]byte{flagGone})})
	return nil
}

// keep moves the version that is current to history. A version replaced at its
// own time was never seen by a reading as of a time, and is not kept.
func (b *Batch) keep(s ids.Slice, key, old []byte, ts uint64) {
	if was := binary.BigEndian.Uint64(old); was < ts {
		b.rows.add(row{key: b.historyKey(s, key, was), value: old, version: true})
	}
}

func (b *Batch) historyKey(s ids.Slice, key []byte, ts uint64) []byte {
	b.scratch = appendTime(appendHistoryKey(b.scratch[:0], s, key), ts)
	return b.rows.copy(b.scratch)
}

// current returns the newest version of a full key with its time, from this
// batch or from what is committed; nil if there is none.
func (b *Batch) current(full []byte) ([]byte, error) {
	if w, _ := b.rows.noted(full); w != nil {
		return w.value, nil
	}
	if b.dropped {
		return nil, fault.E(fault.Invalid, "meta.Put", "", "a batch that drops a slice cannot change keys afterwards")
	}
	return b.db.current(full)
}

// Set writes an unversioned row.
func (b *Batch) Set(s ids.Slice, key, value []byte) error {
	b.scratch = appendKey(b.scratch[:0], areaPlain, s, key)
	b.rows.note(b.scratch, b.rows.copy(value))
	return nil
}

// Unset removes an unversioned row.
func (b *Batch) Unset(s ids.Slice, key []byte) error {
	b.scratch = appendKey(b.scratch[:0], areaPlain, s, key)
	b.rows.note(b.scratch, nil)
	return nil
}

// SetApplied records the serial of the last entry of a slice that this batch
// and those before it hold.
func (b *Batch) SetApplied(s ids.Slice, serial ids.Serial) error {
	b.scratch = appendPrefix(b.scratch[:0], areaApplied, s)
	b.rows.note(b.scratch, binary.LittleEndian.AppendUint64(nil, uint64(serial)))
	return nil
}

// DropSlice removes all of a slice: current, history, unversioned, applied.
// It must be the last change of versioned keys in its batch.
func (b *Batch) DropSlice(s ids.Slice) error {
	if _, err := b.rows.write(b.b); err != nil {
		return err
	}
	b.dropped = true
	for _, area := range []byte{areaCurrent, areaHistory, areaApplied, areaPlain} {
		if err := b.b.DeleteRange(appendPrefix(nil, area, s), after(area, s), nil); err != nil {
			return fault.Wrap(fault.IO, "meta.DropSlice", "", err)
		}
	}
	return nil
}

// Empty reports whether the batch holds nothing.
func (b *Batch) Empty() bool { return len(b.rows.list) == 0 && b.b.Empty() }

// Commit applies the batch and ends it. It does not make it durable: that is
// the journal's part, until Flush.
func (b *Batch) Commit() error {
	written, err := b.rows.write(b.b)
	if err != nil {
		return err
	}
	b.db.cache.hide(written)
	if err := b.b.Commit(pebble.NoSync); err != nil {
		b.db.cache.show(written)
		return fault.Wrap(fault.IO, "meta.Commit", "", err)
	}
	b.db.cache.update(written)
	if b.dropped {
		b.db.cache.reset()
	}
	b.end()
	return fault.Wrap(fault.IO, "meta.Commit", "", b.b.Close())
}

// Abandon ends a batch without applying it.
func (b *Batch) Abandon() {
	b.end()
	// Closing a batch that was not applied cannot lose anything.
	_ = b.b.Close()
}

func (b *Batch) end() {
	if r := b.rows; r != nil && r.empty() {
		b.db.spare.Put(r)
	}
	b.rows = nil
}
