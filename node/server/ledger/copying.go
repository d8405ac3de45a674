package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/journal"
	"cartwheel.dev/node/store/meta"
)

// Both are rows of slice 0: a copy that begins anew drops the slice's own.
const (
	// keyCopying, followed by a slice (4 bytes, big-endian) whose state is not
	// whole: serial, epoch and time of what its log follows, and the position in
	// the journal before which this row and the next have every record (8 bytes
	// each, little-endian).
	keyCopying = "\x00copying"
	// keyDelayed, followed by such a slice and a serial (8 bytes, big-endian):
	// an entry that waits for the state, as its record.
	keyDelayed = "\x00delayed"
)

// savedCopying is what the metadata has of a slice that is not whole.
type savedCopying struct {
	base      geoconfig.Serial
	baseEpoch geoconfig.Epoch
	epochs    []geoconfig.Epoch // of the entries base+1 and on
}

func copyingKey(s geoconfig.SliceID) []byte {
	return binary.BigEndian.AppendUint32([]byte(keyCopying), uint32(s))
}

func delayedKey(s geoconfig.SliceID, serial geoconfig.Serial) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte(keyDelayed), uint32(s)), uint64(serial))
}

// eachDelayed calls f for the entries that wait for a slice's state.
func eachDelayed(db *meta.DB, s geoconfig.SliceID, f func(key, value []byte) bool) error {
	return db.ScanPlain(0, delayedKey(s, 0), delayedKey(s+1, 0), f)
}

// saveCopying saves what waits for a slice's state. What was saved before and
// is still so is not written again.
func (l *Ledger) saveCopying(b *meta.Batch, mark Mark, s *State) error {
	c := s.Copying
	was := l.copying[s.Slice]
	if was == nil || was.base != c.Base || was.baseEpoch != c.BaseEpoch {
		if err := l.dropCopying(b, s.Slice); err != nil {
			return err
		}
		was = &savedCopying{base: c.Base, baseEpoch: c.BaseEpoch}
	}
	var encoded replica.Pieces
	length := len(was.epochs)
	for i, e := range c.Entries {
		if i < len(was.epochs) && was.epochs[i] == e.Epoch {
			continue
		}
		encoded.Record(&replica.Record{Kind: replica.RecordEntry, Slice: s.Slice, Entry: e})
		pieces, _ := encoded.Take()
		if err := b.Set(0, delayedKey(s.Slice, e.Serial), bytes.Join(pieces, nil)); err != nil {
			return err
		}
		was.epochs = append(was.epochs[:i], e.Epoch)
	}
	for i := len(c.Entries); i < length; i++ {
		if err := b.Unset(0, delayedKey(s.Slice, c.Base+geoconfig.Serial(i)+1)); err != nil {
			return err
		}
	}
	was.epochs = was.epochs[:len(c.Entries)] // the others were cut
	l.copying[s.Slice] = was
	v := make([]byte, 0, copyingSize)
	v = binary.LittleEndian.AppendUint64(v, uint64(c.Base))
	v = binary.LittleEndian.AppendUint64(v, uint64(c.BaseEpoch))
	v = binary.LittleEndian.AppendUint64(v, uint64(c.BaseTime))
	return b.Set(0, copyingKey(s.Slice), binary.LittleEndian.AppendUint64(v, uint64(mark.end)))
}

// dropCopying removes what saveCopying wrote, in this life or an earlier one.
func (l *Ledger) dropCopying(b *meta.Batch, s geoconfig.SliceID) error {
	delete(l.copying, s)
	stale := [][]byte{copyingKey(s)}
	err := eachDelayed(l.store.Meta(), s, func(k, _ []byte) bool {
		stale = append(stale, bytes.Clone(k))
		return true
	})
	for i := 0; err == nil && i < len(stale); i++ {
		err = b.Unset(0, stale[i])
	}
	return err
}

// copyingSize is the length of the value of keyCopying.
const copyingSize = 32

// loadCopying reads what saveCopying wrote.
func (r *recovering) loadCopying(db *meta.DB, s geoconfig.SliceID) error {
	v, ok, err := db.Plain(0, copyingKey(s))
	if err != nil || !ok {
		return err
	}
	malformed := fault.E(fault.Corrupt, "ledger.loadCopying", fmt.Sprintf("slices/%d", s), "what waits for a copy is malformed")
	if len(v) != copyingSize {
		return malformed
	}
	r.reset(geoconfig.Serial(binary.LittleEndian.Uint64(v)), geoconfig.Epoch(binary.LittleEndian.Uint64(v[8:])),
		hlc.Time(binary.LittleEndian.Uint64(v[16:])))
	r.copying = journal.Position(binary.LittleEndian.Uint64(v[24:]))
	err = eachDelayed(db, s, func(_, value []byte) bool {
		rec, e := replica.DecodeRecord(bytes.Clone(value))
		if e != nil || rec.Entry == nil || rec.Entry.Serial != r.Base+geoconfig.Serial(len(r.Entries))+1 {
			ok = false
			return false
		}
		r.Entries = append(r.Entries, rec.Entry)
		return true
	})
	if err == nil && !ok {
		err = malformed
	}
	return err
}
