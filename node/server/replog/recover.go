package replog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
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

func rowKey(s ids.Slice) []byte {
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
	if s.Copying != nil {
		return saveCopying(b, s)
	}
	if s.Gone || !s.Known {
		return nil
	}
	if err := dropCopying(l.store.Meta(), b, s.Slice); err != nil {
		return err
	}
	return SaveBase(b, s.Slice, s.Snapshot)
}

// SaveBase notes in the metadata where a slice's state stands.
func SaveBase(b *meta.Batch, s ids.Slice, at replica.Snapshot) error {
	v := make([]byte, 0, 24+len(at.Clients))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Serial))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Epoch))
	v = binary.LittleEndian.AppendUint64(v, uint64(at.Time))
	return b.Set(s, []byte(keyCheckpoint), append(v, at.Clients...))
}

// Own reports whether a key of the plain area is the ledger's, not the tree's.
func Own(key []byte) bool { return len(key) > 0 && key[0] == OwnFirst }

// OwnFirst is the first byte of the keys for which Own holds.
const OwnFirst byte = 0

// recovering is what is known of a slice while the journal is read.
type recovering struct {
	// Restored is the row, and what the log holds behind saved. Its base is that
	// of the last reset, as long as it is incomplete.
	replica.Restored
	saved   replica.Snapshot // the checkpoint in the metadata; none: 0
	applied ids.Serial       // by the metadata
	anew    bool             // what waited for the copy is in an earlier version's form
}

// loadRows reads the rows that save wrote.
func loadRows(db *meta.DB, self ids.Node, found func(ids.Slice) (*recovering, error)) error {
	const op fault.Op = "replog.loadRows"
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
		r, err := found(row.ID)
		if err != nil {
			bad = err
			return false
		}
		r.learn(row, self)
		r.Intent = ids.Epoch(binary.LittleEndian.Uint64(v)) == row.Epoch
		return true
	})
	if err == nil {
		err = bad
	}
	return err
}

// load reads the checkpoint that save wrote.
func load(db *meta.DB, s ids.Slice) (at replica.Snapshot, err error) {
	const op fault.Op = "replog.load"
	v, ok, err := db.Plain(s, []byte(keyCheckpoint))
	if err != nil || !ok {
		return at, err
	}
	if len(v) < 24 {
		return at, fault.E(fault.Corrupt, op, fmt.Sprintf("slices/%d", s), "a checkpoint is malformed")
	}
	at.Serial = ids.Serial(binary.LittleEndian.Uint64(v))
	at.Epoch = ids.Epoch(binary.LittleEndian.Uint64(v[8:]))
	at.Time = hlc.Time(binary.LittleEndian.Uint64(v[16:]))
	at.Clients = v[24:]
	return at, nil
}

// Recover reads the journal and returns what it and the metadata hold of each
// slice, by ID.
func (l *Ledger) Recover() ([]replica.Restored, error) {
	const op fault.Op = "replog.Recover"
	found := map[ids.Slice]*recovering{}
	db, self := l.store.Meta(), l.store.NodeID()
	find := func(s ids.Slice) (*recovering, error) {
		if r := found[s]; r != nil {
			return r, nil
		}
		r := &recovering{}
		found[s] = r
		var err error
		if r.applied, err = db.Applied(s); err == nil {
			r.saved, err = load(db, s)
		}
		if err == nil {
			err = EachUnheld(db, s, func(e replica.EntryID, _ []byte) { r.Unheld = append(r.Unheld, e) })
		}
		if err == nil {
			err = r.loadCopying(db, s)
		}
		return r, err
	}
	if err := loadRows(db, self, find); err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	known, err := db.Slices()
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	for _, s := range known {
		if _, err := find(s); err != nil {
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
		r, err := find(rec.Slice)
		if err != nil {
			return err
		}
		l.replayed(at, jr.FramedSize(), &rec)
		return r.replay(&rec, self, l.store.Packs())
	})
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	out := make([]replica.Restored, 0, len(found))
	for _, r := range found {
		if r.Row.ID != 0 {
			out = append(out, r.restored())
			at := &out[len(out)-1]
			l.follows.Reset(at.Row.ID, at.Base+ids.Serial(len(at.Entries)))
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Row.ID < out[j].Row.ID })
	return out, nil
}

// replayed notes a record that is in the journal already.
func (l *Ledger) replayed(at journal.Position, bytes int, rec *replica.Record) {
	a := appended{at: at, bytes: bytes, done: true}
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
func (r *recovering) replay(rec *replica.Record, self ids.Node, packs *pack.Packs) error {
	switch rec.Kind {
	case replica.RecordEntry:
		return r.replayEntry(rec.Entry, packs)
	case replica.RecordRow:
		if rec.Row.Epoch >= r.Row.Epoch {
			r.Intent = r.Intent && rec.Row.Epoch == r.Row.Epoch
			r.learn(rec.Row, self)
		}
	case replica.RecordIntent:
		if rec.Row.Epoch >= r.Row.Epoch {
			r.Row, r.Intent = *rec.Row, true
		}
	case replica.RecordReset:
		r.reset(rec.Base, rec.BaseEpoch, rec.BaseTime)
	case replica.RecordComplete:
		r.Incomplete = false
	}
	return nil
}

// learn takes a newer row. One that does not list this node made the copy void:
// what the metadata still has of it was to be dropped.
func (r *recovering) learn(row *geoconfig.SliceRow, self ids.Node) {
	r.Row = *row
	if _, member := row.Member(self); !member {
		r.reset(0, 0, 0)
	}
}

// reset voids what the log held so far.
func (r *recovering) reset(base ids.Serial, epoch ids.Epoch, at hlc.Time) {
	r.Base, r.BaseEpoch, r.BaseTime = base, epoch, at
	r.Entries, r.Incomplete = nil, true
}

// restored puts the journal and the metadata together. The checkpoint of a
// complete copy is newer than its last reset: a transfer saves one before it
// says that it is complete. What an incomplete copy has will all come again.
func (r *recovering) restored() replica.Restored {
	out := r.Restored
	if n := len(out.Entries); n > 0 && plant.On(plant.LedgerLosesLast) && out.Entries[n-1].Serial > r.applied {
		out.Entries = out.Entries[:n-1]
	}
	if out.Incomplete = out.Incomplete || r.anew; out.Incomplete {
		out.Entries, out.Applied, out.ClientsAt, out.Unheld = nil, out.Base, out.Base, nil
		return out
	}
	out.Base, out.BaseEpoch, out.BaseTime = r.saved.Serial, r.saved.Epoch, r.saved.Time
	out.Clients, out.ClientsAt, out.Applied = r.saved.Clients, r.saved.Serial, r.applied
	if plant.On(plant.LedgerForgetsResults) {
		out.Clients = nil
	}
	return out
}

func (r *recovering) replayEntry(e *replica.Entry, packs *pack.Packs) error {
	if e.Serial <= r.applied && len(e.Data) > 0 {
		if err := putInline(packs, e.Data); err != nil {
			return err
		}
	}
	keep := len(r.Entries)
	for keep > 0 && r.Entries[keep-1].Serial >= e.Serial {
		keep--
	}
	r.Entries = r.Entries[:keep] // void, though what took their place may be in the checkpoint
	if e.Serial > r.saved.Serial {
		r.Entries = append(r.Entries, e)
	}
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
