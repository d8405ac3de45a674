package replicatest

import (
	"bytes"
	"maps"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// disk holds what survives a crash.
type disk struct {
	synced     [][]byte
	unsynced   [][]byte
	checkpoint checkpoint
	past       []image // oldest first
}

// image is what a disk held at some time.
type image struct {
	synced     [][]byte
	checkpoint checkpoint
}

type checkpoint struct {
	snapshot replica.Snapshot
	state    map[string]string
}

func (d *disk) init() { d.checkpoint.state = map[string]string{} }

func (d *disk) sync(records int) {
	d.synced = append(d.synced, d.unsynced[:records]...)
	d.unsynced = append([][]byte(nil), d.unsynced[records:]...)
}

// crash loses what was not synced, or the later part of it.
func (d *disk) crash(rng interface{ IntN(int) int }) {
	if n := len(d.unsynced); n > 0 {
		d.synced = append(d.synced, d.unsynced[:rng.IntN(n+1)]...)
	}
	d.unsynced = nil
}

// images bounds how many states of the past a disk may go back to.
const images = 6

// remember keeps the disk's state, so that it may go back to it.
func (d *disk) remember() {
	if len(d.past) == images {
		d.past = slices.Delete(d.past, 0, 1)
	}
	d.past = append(d.past, image{slices.Clip(d.synced), d.checkpoint})
}

// rollBack brings back an earlier state, as a restored backup or a snapshot of a
// virtual machine does.
func (d *disk) rollBack(to image) {
	d.synced, d.checkpoint, d.unsynced, d.past = to.synced, to.checkpoint, nil, nil
}

// rot loses the last records, as a damaged end of the journal does: it looks as
// if they had never been written.
func (d *disk) rot(records int) {
	d.synced = slices.Clip(d.synced[:len(d.synced)-min(records, len(d.synced))])
}

func (d *disk) save(s replica.Snapshot, state map[string]string, first ids.Serial) {
	d.checkpoint = checkpoint{s, state}
	var kept [][]byte
	for _, b := range d.synced {
		rec, err := replica.DecodeRecord(b)
		if err != nil {
			panic(err)
		}
		if rec.Kind == replica.RecordEntry && rec.Entry.Serial < first {
			continue
		}
		kept = append(kept, b)
	}
	d.synced = kept
}

func (d *disk) replace(s replica.Snapshot, state map[string]string) {
	d.checkpoint = checkpoint{s, maps.Clone(state)}
}

// restored replays the records, as a driver does after a restart.
func (d *disk) restored() (replica.Restored, bool) {
	r := replica.Restored{Base: 0}
	found := false
	entries := map[ids.Serial]*replica.Entry{}
	last := ids.Serial(0)
	var resetAt *replica.Record
	for _, b := range d.synced {
		rec, err := replica.DecodeRecord(bytes.Clone(b))
		if err != nil {
			panic(err)
		}
		switch rec.Kind {
		case replica.RecordRow:
			r.Row, r.Intent, found = *rec.Row, false, true
		case replica.RecordIntent:
			r.Intent = rec.Row.Epoch == r.Row.Epoch
		case replica.RecordReset:
			clear(entries)
			last = rec.Base
			r.Incomplete, resetAt = true, &rec
		case replica.RecordComplete:
			r.Incomplete = false
		case replica.RecordEntry:
			for s := rec.Entry.Serial; s <= last; s++ {
				delete(entries, s)
			}
			entries[rec.Entry.Serial] = rec.Entry
			last = rec.Entry.Serial
		}
	}
	c := d.checkpoint.snapshot
	r.Base, r.BaseEpoch, r.BaseTime = c.Serial, c.Epoch, c.Time
	r.Applied, r.Clients, r.ClientsAt = c.Serial, c.Clients, c.Serial
	if resetAt != nil && (r.Incomplete || c.Serial < resetAt.Base) {
		if !r.Incomplete {
			panic("complete, but the checkpoint is older than the transfer")
		}
		r.Base, r.BaseEpoch, r.BaseTime = resetAt.Base, resetAt.BaseEpoch, resetAt.BaseTime
		r.Applied, r.Clients, r.ClientsAt = r.Base, nil, r.Base
	}
	if !r.Incomplete {
		// What the journal has before the checkpoint is for others; of its
		// oldest entry only the epoch counts.
		s := r.Base
		for s > 0 && entries[s] != nil {
			s--
		}
		if s++; s == 1 && entries[1] != nil {
			r.Base, r.BaseEpoch, r.BaseTime = 0, 0, 0
		} else if s <= r.Base {
			r.Base, r.BaseEpoch, r.BaseTime = s, entries[s].Epoch, entries[s].Time
		}
	}
	for s := r.Base + 1; entries[s] != nil; s++ {
		r.Entries = append(r.Entries, entries[s])
	}
	return r, found
}

func (d *disk) read(r replica.Read) []*replica.Entry {
	found := map[ids.Serial]*replica.Entry{}
	for _, b := range append(d.synced[:len(d.synced):len(d.synced)], d.unsynced...) {
		rec, err := replica.DecodeRecord(b)
		if err != nil {
			panic(err)
		}
		if rec.Kind == replica.RecordReset {
			clear(found)
		}
		if rec.Kind == replica.RecordEntry && rec.Entry.Serial >= r.From && rec.Entry.Serial <= r.To {
			found[rec.Entry.Serial] = rec.Entry
		}
	}
	var out []*replica.Entry
	for s := r.From; found[s] != nil && len(out) < 16; s++ {
		out = append(out, found[s])
	}
	return out
}

// sawEpoch reports whether a row of that epoch is among what is on disk.
func (d *disk) sawEpoch(e ids.Epoch) bool {
	for _, b := range d.synced {
		if rec, err := replica.DecodeRecord(b); err == nil && rec.Kind == replica.RecordRow && rec.Row.Epoch >= e {
			return true
		}
	}
	return false
}
