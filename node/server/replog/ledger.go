// Package replog keeps the replica core's records in the node's journal, brings
// them back after a start, and says how much of the journal is still of use, so
// that checkpoints can trim it. It does not know what entries mean beyond
// their inline chunks. Append and Checkpoint may be called from different
// goroutines; Recover comes before both.
package replog

import (
	"context"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/journal"
)

// kindReplica marks the replica core's records in the journal.
const kindReplica journal.Kind = 1

// Ledger is the journal of the replica core.
type Ledger struct {
	store *store.Store

	mu      sync.Mutex // guards below
	appends []appended // those that may still be of use, oldest first
	gone    uint64     // appends before those
	follows invariant.Log
	intents map[ids.Slice]ids.Epoch
}

// appended says what one append of the journal holds.
type appended struct {
	at    journal.Position
	bytes int
	done  bool // on disk, so that at is known
	// highest serial of each slice's entries; few slices are in one append.
	highest []sliceSerial
	// other records are saved by a checkpoint itself.
}

type sliceSerial struct {
	slice  ids.Slice
	serial ids.Serial
}

func (a *appended) note(s ids.Slice, serial ids.Serial) {
	for i := range a.highest {
		if a.highest[i].slice == s {
			a.highest[i].serial = max(a.highest[i].serial, serial)
			return
		}
	}
	a.highest = append(a.highest, sliceSerial{s, serial})
}

// New returns the ledger of an open store.
func New(s *store.Store) *Ledger {
	return &Ledger{store: s, intents: map[ids.Slice]ids.Epoch{}}
}

// part is a run of records that the journal takes in one append.
type part struct {
	records []journal.Record
	appended
}

// parts encodes records for the journal. They are one part, unless they do not
// fit a segment. Then each part but the first begins with an entry: what the core
// records beside an entry lies in the part of the entry before it.
func (l *Ledger) parts(records []replica.Record) []part {
	out := []part{{records: make([]journal.Record, 0, len(records))}}
	most := l.store.Journal().MaxAppend()
	var encoded replica.Pieces
	for i := range records {
		r := &records[i]
		if plant.On(plant.LedgerDropsRows) && r.Kind == replica.RecordRow {
			continue
		}
		encoded.Record(r)
		pieces, _ := encoded.Take()
		framed := journal.Record{Slice: r.Slice, Kind: kindReplica, Pieces: pieces}
		p := &out[len(out)-1]
		if size := framed.FramedSize(); r.Entry != nil && p.bytes > 0 && p.bytes+size > most {
			out = append(out, part{})
			p = &out[len(out)-1]
		}
		p.records = append(p.records, framed)
		p.bytes += framed.FramedSize()
		if r.Entry != nil {
			p.note(r.Slice, r.Entry.Serial)
		}
	}
	return out
}

// Append journals records in order, and together where they fit a segment. done
// is called from the journal's goroutine once all of them are durable, or one
// failed. An error returned means that it will not be called.
func (l *Ledger) Append(records []replica.Record, done func(error)) error {
	list := l.parts(records)
	l.mu.Lock()
	defer l.mu.Unlock() // a violation leaves it
	for i := range records {
		l.followLocked(&records[i])
	}
	for i := range list {
		last := i == len(list)-1
		l.appends = append(l.appends, list[i].appended)
		if err := l.store.Journal().Append(list[i].records, func(at journal.Position, err error) {
			if err == nil {
				l.placed(at)
			}
			if last { // one before it that failed fails it, too
				done(err)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// Room reports whether the store can take so many more bytes now: nil,
// Overloaded or NoSpace.
func (l *Ledger) Room(bytes int) error { return l.store.Room(bytes) }

// followLocked checks that a record follows what the journal has of its slice.
// Callers hold mu.
func (l *Ledger) followLocked(r *replica.Record) {
	switch r.Kind {
	case replica.RecordEntry:
		l.follows.Entry(r.Slice, r.Entry.Serial, journal.Folder)
	case replica.RecordReset:
		l.follows.Reset(r.Slice, r.Base)
	case replica.RecordIntent:
		l.intents[r.Slice] = r.Row.Epoch
	}
}

// placed notes where the oldest append without a place lies: the journal tells
// them in order.
func (l *Ledger) placed(at journal.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.appends) - 1; i >= 0; i-- {
		if i == 0 || l.appends[i-1].done {
			l.appends[i].at, l.appends[i].done = at, true
			return
		}
	}
}

// Mark says how far the ledger had got when states were taken: they have
// everything that was appended before.
type Mark struct {
	appends uint64
	end     journal.Position // what lies at or behind it was appended later
}

// Mark returns the mark of now. It is called where Append is, between two
// appends, with nothing left that is to be appended.
func (l *Ledger) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{appends: l.gone + uint64(len(l.appends)), end: l.store.Journal().End()}
}

// keep returns the position before which nothing is of use once the states of
// a mark are saved, and forgets the appends before it. Appends of slices that
// are not among applied hold nothing of use; appends behind the mark do,
// whatever they hold.
func (l *Ledger) keep(mark Mark, applied map[ids.Slice]ids.Serial) journal.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, end := 0, journal.Position(0)
	for first < len(l.appends) && l.gone < mark.appends && l.appends[first].done && useless(&l.appends[first], applied) {
		end = l.appends[first].at + journal.Position(l.appends[first].bytes)
		first++
		l.gone++
	}
	l.appends = append([]appended(nil), l.appends[first:]...)
	if len(l.appends) > 0 && l.appends[0].done {
		return l.appends[0].at
	}
	return end // what follows it is still being written
}

func useless(a *appended, applied map[ids.Slice]ids.Serial) bool {
	if plant.On(plant.LedgerTrimsAhead) {
		return true
	}
	for _, h := range a.highest {
		if upTo, ok := applied[h.slice]; ok && h.serial > upTo {
			return false
		}
	}
	return true
}

// State is a slice's state at a checkpoint.
type State struct {
	Slice    ids.Slice
	Row      *geoconfig.SliceRow
	Snapshot replica.Snapshot
	// Known is false where there is no snapshot, as while a transfer runs.
	Known bool
	// Copying is set where the state is not whole.
	Copying *replica.Incomplete
	// Gone: the row lists this node no more; nothing of the state is kept.
	Gone bool
}

// Checkpoint saves the slices' states beside the metadata, makes everything
// durable and trims the journal. The states are those of one turn of the loop,
// after its outputs were carried out, and mark is of the same moment. A slice
// that is not whole keeps no more in the journal than a whole one.
func (l *Ledger) Checkpoint(ctx context.Context, mark Mark, states []State) error {
	const op fault.Op = "replog.Checkpoint"
	db := l.store.Meta()
	b := db.NewBatch()
	applied := map[ids.Slice]ids.Serial{}
	for i := range states {
		s := &states[i]
		if err := l.save(b, s); err != nil {
			b.Abandon()
			return fault.Wrap(fault.IO, op, "", err)
		}
		switch {
		case s.Known:
			applied[s.Slice] = s.Snapshot.Serial
		case s.Copying != nil && s.Copying.Begun:
			applied[s.Slice] = s.Copying.At.Serial
		case s.Copying != nil: // nothing that is known of it counts
		case !s.Gone:
			applied[s.Slice] = 0 // nothing is known of it: all its entries are of use
		}
	}
	if err := b.Commit(); err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	keep := l.keep(mark, applied)
	if keep == 0 {
		return nil
	}
	return fault.Wrap(fault.IO, op, "", l.store.Checkpoint(ctx, keep))
}
