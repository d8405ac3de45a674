package meta

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// Batch collects changes over any slices that are applied together or not at
// all. One goroutine owns a batch; keys and values are copied as they come in.
// Times must not fall for one key.
type Batch struct {
	db *DB
	b  *pebble.Batch
	// touched maps the full current keys changed here to the place of their
	// newest value in order, so that a second change finds the first.
	touched map[string]int
	order   []change
	dropped bool
	scratch []byte
}

type change struct {
	key   string
	value []byte // time and value; nil: deleted
}

// NewBatch starts a batch.
func (db *DB) NewBatch() *Batch {
	return &Batch{db: db, b: db.p.NewBatch(), touched: map[string]int{}}
}

// Put makes value the newest version of a key; the one before moves to history.
func (b *Batch) Put(s geoconfig.SliceID, key, value []byte, ts uint64) error {
	full := appendKey(b.scratch[:0], areaCurrent, s, key)
	b.scratch = full
	old, err := b.current(full)
	if err != nil {
		return err
	}
	if old != nil {
		if err := b.keep(s, key, old, ts); err != nil {
			return err
		}
	}
	stamped := make([]byte, 8, 8+len(value))
	binary.BigEndian.PutUint64(stamped, ts)
	stamped = append(stamped, value...)
	b.note(full, stamped)
	return fault.Wrap(fault.IO, "meta.Put", "", b.b.Set(full, stamped, nil))
}

// Delete removes a key as of a time; its versions stay in history.
func (b *Batch) Delete(s geoconfig.SliceID, key []byte, ts uint64) error {
	full := appendKey(b.scratch[:0], areaCurrent, s, key)
	b.scratch = full
	old, err := b.current(full)
	if err != nil || old == nil {
		return err
	}
	if err := b.keep(s, key, old, ts); err != nil {
		return err
	}
	h := appendTime(appendHistoryKey(nil, s, key), ts)
	if err := b.b.Set(h, []byte{flagGone}, nil); err != nil {
		return fault.Wrap(fault.IO, "meta.Delete", "", err)
	}
	b.note(full, nil)
	return fault.Wrap(fault.IO, "meta.Delete", "", b.b.Delete(full, nil))
}

// keep moves the version that is current to history. A version replaced at its
// own time was never seen by a reading as of a time, and is not kept.
func (b *Batch) keep(s geoconfig.SliceID, key, old []byte, ts uint64) error {
	was := binary.BigEndian.Uint64(old)
	if was >= ts {
		return nil
	}
	h := appendTime(appendHistoryKey(nil, s, key), was)
	d := b.b.SetDeferred(len(h), 1+len(old)-8)
	copy(d.Key, h)
	d.Value[0] = flagValue
	copy(d.Value[1:], old[8:])
	return fault.Wrap(fault.IO, "meta.Put", "", d.Finish())
}

// current returns the newest version of a full key with its time, from this
// batch or from what is committed; nil if there is none.
func (b *Batch) current(full []byte) ([]byte, error) {
	if i, ok := b.touched[string(full)]; ok {
		return b.order[i].value, nil
	}
	if b.dropped {
		return nil, fault.E(fault.Invalid, "meta.Put", "", "a batch that drops a slice cannot change keys afterwards")
	}
	return b.db.current(full)
}

func (b *Batch) note(full, value []byte) {
	if i, ok := b.touched[string(full)]; ok {
		b.order[i].value = value
		return
	}
	k := string(full)
	b.touched[k] = len(b.order)
	b.order = append(b.order, change{key: k, value: value})
}

// Set writes an unversioned row.
func (b *Batch) Set(s geoconfig.SliceID, key, value []byte) error {
	return fault.Wrap(fault.IO, "meta.Set", "", b.b.Set(appendKey(nil, areaPlain, s, key), value, nil))
}

// Unset removes an unversioned row.
func (b *Batch) Unset(s geoconfig.SliceID, key []byte) error {
	return fault.Wrap(fault.IO, "meta.Unset", "", b.b.Delete(appendKey(nil, areaPlain, s, key), nil))
}

// SetApplied records the serial of the last entry of a slice that this batch
// and those before it hold.
func (b *Batch) SetApplied(s geoconfig.SliceID, serial geoconfig.Serial) error {
	v := binary.LittleEndian.AppendUint64(nil, uint64(serial))
	return fault.Wrap(fault.IO, "meta.SetApplied", "", b.b.Set(appendPrefix(nil, areaApplied, s), v, nil))
}

// DropSlice removes all of a slice: current, history, unversioned, applied.
// It must be the last change of versioned keys in its batch.
func (b *Batch) DropSlice(s geoconfig.SliceID) error {
	b.dropped = true
	for _, area := range []byte{areaCurrent, areaHistory, areaApplied, areaPlain} {
		if err := b.b.DeleteRange(appendPrefix(nil, area, s), after(area, s), nil); err != nil {
			return fault.Wrap(fault.IO, "meta.DropSlice", "", err)
		}
	}
	return nil
}

// Empty reports whether the batch holds nothing.
func (b *Batch) Empty() bool { return b.b.Empty() }

// Commit applies the batch and ends it. It does not make it durable: that is
// the journal's part, until Flush.
func (b *Batch) Commit() error {
	err := b.b.Commit(pebble.NoSync)
	if err != nil {
		return fault.Wrap(fault.IO, "meta.Commit", "", err)
	}
	if b.dropped {
		b.db.cache.reset()
	} else {
		for _, c := range b.order {
			key := []byte(c.key)
			b.db.cache.shard(key).update(key, c.value)
		}
	}
	return fault.Wrap(fault.IO, "meta.Commit", "", b.b.Close())
}

// Abandon ends a batch without applying it.
func (b *Batch) Abandon() {
	// Closing a batch that was not applied cannot lose anything.
	_ = b.b.Close()
}
