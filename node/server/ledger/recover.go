package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/journal"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

// Rows in the plain area that are not the tree's; docs/formats/ledger.md
// describes them. Those of slice 0 are for all slices, so that a row outlives
// its slice's data.
const (
	// keyCheckpoint of a slice: serial, epoch, time (8 bytes each,
	// little-endian), then the clients' table. Its first byte is none of the
	// tree's kinds.
	keyCheckpoint = "\x00checkpoint"
	// keyRow of slice 0, followed by the slice (4 bytes, big-endian): the epoch
	// of the last intent (8 bytes, little-endian), then replica.AppendRow.
	keyRow = "\x00row"
)

func rowKey(s geoconfig.SliceID) []byte {
	return binary.BigEndian.AppendUint32([]byte(keyRow), uint32(s))
}

func (l *Ledger) save(b *meta.Batch, s *State) error {
	if s.Row != nil {
		l.mu.Lock()
		intent := l.intents[s.Slice]
		l.mu.Unlock()
		v := binary.LittleEndian.AppendUint64(nil, uint64(intent))
		if err := b.Set(0, rowKey(s.Slice), replica.AppendRow(v, s.Row)); err != nil {
			return err
		}
	}
	if s.Gone {
		return nil
	}
	return SaveBase(b, s.Slice, s.Snapshot)
}

// SaveBase notes in the metadata where a slice's state stands.
func SaveBase(b *meta.Batch, s geoconfig.SliceID, at replica.Snapshot) error {
	v := make([]byte, 0, 24+len(at.Clients))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Serial))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Epoch))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Time))
	return b.Set(s, []byte(keyCheckpoint), append(v, at.Clients...))
}

// Own reports whether a key of the plain area is the ledger's, not the tree's.
func Own(key []byte) bool { return len(key) > 0 && key[0] == 0 }

// loadRows reads the rows that save wrote.
func loadRows(db *meta.DB, restored func(geoconfig.SliceID) (*replica.Restored, error)) error {
	const op fault.Op = "ledger.loadRows"
	var bad error
	err := db.ScanPlain(0, []byte(keyRow), []byte(keyRow+"\xff\xff\xff\xff"), func(_, v []byte) bool {
		if len(v) < 8 {
			bad = fault.E(fault.Corrupt, op, "", "a row is malformed")
			return false
		}
		row, _, err := replica.DecodeRow(bytes.Clone(v[8:]))
		if err != nil {
			bad = err
			return false
		}
		r, err := restored(row.ID)
		if err != nil {
			bad = err
			return false
		}
		r.Row = *row
		r.Intent = geoconfig.Epoch(binary.LittleEndian.Uint64(v)) == row.Epoch
		return true
	})
	if err == nil {
		err = bad
	}
	return err
}

// load reads the checkpoint that save wrote.
func load(db *meta.DB, s geoconfig.SliceID, r *replica.Restored) error {
	const op fault.Op = "ledger.load"
	v, ok, err := db.Plain(s, []byte(keyCheckpoint))
	if err != nil || !ok {
		return err
	}
	if len(v) < 24 {
		return fault.E(fault.Corrupt, op, fmt.Sprintf("slices/%d", s), "a checkpoint is malformed")
	}
	r.Base = geoconfig.Serial(binary.LittleEndian.Uint64(v))
	r.BaseEpoch = geoconfig.Epoch(binary.LittleEndian.Uint64(v[8:]))
	r.BaseTime = hlc.Time(binary.LittleEndian.Uint64(v[16:]))
	r.Clients, r.ClientsAt = v[24:], r.Base
	return nil
}

// Recover reads the journal and returns what it and the metadata hold of each
// slice, by ID.
func (l *Ledger) Recover() ([]replica.Restored, error) {
	const op fault.Op = "ledger.Recover"
	found := map[geoconfig.SliceID]*replica.Restored{}
	db := l.store.Meta()
	restored := func(s geoconfig.SliceID) (*replica.Restored, error) {
		if r := found[s]; r != nil {
			return r, nil
		}
		r := &replica.Restored{}
		found[s] = r
		var err error
		if r.Applied, err = db.Applied(s); err != nil {
			return nil, err
		}
		return r, load(db, s, r)
	}
	if err := loadRows(db, restored); err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	known, err := db.Slices()
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	for _, s := range known {
		if _, err := restored(s); err != nil {
			return nil, fault.Wrap(fault.IO, op, fmt.Sprintf("slices/%d", s), err)
		}
	}
	err = l.store.Recover(func(at journal.Position, jr journal.Record) error {
		if jr.Kind != kindReplica {
			return fault.Errorf(fault.NewerVersion, op, "", "a journal record of unknown kind %d: run a newer version", jr.Kind)
		}
		rec, err := replica.DecodeRecord(bytes.Join(jr.Pieces, nil))
		if err != nil {
			return err
		}
		r, err := restored(rec.Slice)
		if err != nil {
			return err
		}
		l.replayed(at, &rec)
		return replay(r, &rec, l.store.Packs())
	})
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	out := make([]replica.Restored, 0, len(found))
	for _, r := range found {
		if r.Row.ID != 0 {
			out = append(out, *r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Row.ID < out[j].Row.ID })
	return out, nil
}

// replayed notes a record that is in the journal already.
func (l *Ledger) replayed(at journal.Position, rec *replica.Record) {
	a := appended{at: at, done: true}
	if rec.Entry != nil {
		a.note(rec.Slice, rec.Entry.Serial)
	}
	l.mu.Lock()
	l.appends = append(l.appends, a)
	if rec.Kind == replica.RecordIntent {
		l.intents[rec.Slice] = rec.Row.Epoch
	}
	l.mu.Unlock()
}

// replay brings one record in.
func replay(r *replica.Restored, rec *replica.Record, packs *pack.Packs) error {
	switch rec.Kind {
	case replica.RecordEntry:
		return replayEntry(r, rec.Entry, packs)
	case replica.RecordRow:
		if rec.Row.Epoch >= r.Row.Epoch {
			r.Intent = r.Intent && rec.Row.Epoch == r.Row.Epoch
			r.Row = *rec.Row
		}
	case replica.RecordIntent:
		if rec.Row.Epoch >= r.Row.Epoch {
			r.Row, r.Intent = *rec.Row, true
		}
	case replica.RecordReset:
		if rec.Base < r.Base {
			return nil // a checkpoint has gone past it
		}
		saved := rec.Base == r.Base && rec.BaseEpoch == r.BaseEpoch && r.Clients != nil
		r.Base, r.BaseEpoch, r.BaseTime = rec.Base, rec.BaseEpoch, rec.BaseTime
		r.Entries, r.Incomplete = nil, true
		if !saved { // else the copy got as far as its clients' table
			r.Clients, r.ClientsAt = nil, rec.Base
		}
	case replica.RecordComplete:
		r.Incomplete = false
	}
	return nil
}

func replayEntry(r *replica.Restored, e *replica.Entry, packs *pack.Packs) error {
	if e.Serial <= r.Applied && len(e.Data) > 0 {
		if err := putInline(packs, e.Data); err != nil {
			return err
		}
	}
	if e.Serial <= r.Base {
		return nil
	}
	keep := len(r.Entries)
	for keep > 0 && r.Entries[keep-1].Serial >= e.Serial {
		keep--
	}
	r.Entries = append(r.Entries[:keep], e)
	return nil
}

// putInline brings the chunks of an entry that the metadata has applied back
// to the packs, which may have lost them in a crash.
func putInline(packs *pack.Packs, data []byte) error {
	_, inline, err := tree.DecodeData(data)
	if err != nil || len(inline) == 0 {
		return err
	}
	addresses, bodies := make([]chunk.Address, len(inline)), make([][]byte, len(inline))
	for i := range inline {
		addresses[i], bodies[i] = inline[i].Address, inline[i].Data
	}
	return packs.PutLazy(addresses, bodies)
}
