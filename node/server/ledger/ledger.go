// Package ledger keeps the replica core's records in the node's journal, brings
// them back after a start, and says how much of the journal is still of use, so
// that checkpoints can trim it. It does not know what entries mean beyond
// their inline chunks. Append and Checkpoint may be called from different
// goroutines; Recover comes before both.
package ledger

import (
	"context"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/journal"
)

// kindReplica marks the replica core's records in the journal.
const kindReplica journal.Kind = 1

// Ledger is the journal of the replica core.
type Ledger struct {
	store *store.Store

	mu      sync.Mutex // guards appends
	appends []appended // those that may still be of use, oldest first
	intents map[geoconfig.SliceID]geoconfig.Epoch
}

// appended says what one append of the journal holds.
type appended struct {
	at   journal.Position
	done bool // on disk, so that at is known
	// highest serial of each slice's entries; few slices are in one append.
	highest []sliceSerial
	// other records are saved by a checkpoint itself.
}

type sliceSerial struct {
	slice  geoconfig.SliceID
	serial geoconfig.Serial
}

func (a *appended) note(s geoconfig.SliceID, serial geoconfig.Serial) {
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
	return &Ledger{store: s, intents: map[geoconfig.SliceID]geoconfig.Epoch{}}
}

// Append journals records together and in order. done is called from the
// journal's goroutine.
func (l *Ledger) Append(records []replica.Record, done func(error)) error {
	out := make([]journal.Record, len(records))
	var a appended
	var encoded replica.Pieces
	for i := range records {
		r := &records[i]
		encoded.Record(r)
		pieces, _ := encoded.Take()
		out[i] = journal.Record{Slice: r.Slice, Kind: kindReplica, Pieces: pieces}
		if r.Entry != nil {
			a.note(r.Slice, r.Entry.Serial)
		}
	}
	l.mu.Lock()
	l.appends = append(l.appends, a)
	for i := range records {
		if records[i].Kind == replica.RecordIntent {
			l.intents[records[i].Slice] = records[i].Row.Epoch
		}
	}
	l.mu.Unlock()
	return l.store.Journal().Append(out, func(at journal.Position, err error) {
		if err == nil {
			l.placed(at)
		}
		done(err)
	})
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

// keep returns the position before which nothing is of use once the given
// state is saved, and forgets the appends before it. Appends of slices that
// the state does not have hold nothing of use.
func (l *Ledger) keep(applied map[geoconfig.SliceID]geoconfig.Serial) journal.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := 0
	for first < len(l.appends) && l.appends[first].done && useless(&l.appends[first], applied) {
		first++
	}
	l.appends = append([]appended(nil), l.appends[first:]...)
	if len(l.appends) > 0 && l.appends[0].done {
		return l.appends[0].at
	}
	if len(l.appends) == 0 {
		return l.store.Journal().End()
	}
	return 0 // being written: nothing to trim before it that is known
}

func useless(a *appended, applied map[geoconfig.SliceID]geoconfig.Serial) bool {
	for _, h := range a.highest {
		if upTo, ok := applied[h.slice]; ok && h.serial > upTo {
			return false
		}
	}
	return true
}

// State is a slice's state at a checkpoint.
type State struct {
	Slice    geoconfig.SliceID
	Row      *geoconfig.SliceRow
	Snapshot replica.Snapshot
	// Known is false where there is no snapshot, as while a transfer runs.
	Known bool
	// Gone: the row lists this node no more; only the row is kept.
	Gone bool
}

// Checkpoint saves the slices' states beside the metadata, makes everything
// durable and trims the journal. The states are those of one turn of the loop,
// after its outputs were carried out.
func (l *Ledger) Checkpoint(ctx context.Context, states []State) error {
	const op fault.Op = "ledger.Checkpoint"
	for i := range states {
		if !states[i].Known && !states[i].Gone {
			return nil // a transfer is under way: its records are needed
		}
	}
	db := l.store.Meta()
	b := db.NewBatch()
	applied := map[geoconfig.SliceID]geoconfig.Serial{}
	for i := range states {
		if err := l.save(b, &states[i]); err != nil {
			b.Abandon()
			return fault.Wrap(fault.IO, op, "", err)
		}
		if states[i].Gone {
			continue
		}
		applied[states[i].Slice] = states[i].Snapshot.Serial
	}
	if err := b.Commit(); err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	keep := l.keep(applied)
	if keep == 0 {
		return nil
	}
	return fault.Wrap(fault.IO, op, "", l.store.Checkpoint(ctx, keep))
}
