package replog

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/meta"
)

// Both are rows of slice 0: a copy that begins anew drops the slice's own.
const (
	// keyCopying, followed by a slice (4 bytes, big-endian) whose state is not
	// whole: serial and epoch of what its log follows (8 bytes each,
	// little-endian). Until a checkpoint of a whole state removes it, only a
	// RecordComplete in the journal says that the state is whole.
	keyCopying = "\x00copying"
	// keyDelayed, followed by such a slice and a serial (8 bytes, big-endian):
	// what waited for the state, as an earlier version kept it.
	keyDelayed = "\x00delayed"
)

func copyingKey(s ids.Slice) []byte {
	return binary.BigEndian.AppendUint32([]byte(keyCopying), uint32(s))
}

func delayedKey(s ids.Slice, serial ids.Serial) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte(keyDelayed), uint32(s)), uint64(serial))
}

// saveCopying saves that a slice's state is not whole, and how far it is: the
// records before that are needed no more.
func saveCopying(b *meta.Batch, s *State) error {
	v := binary.LittleEndian.AppendUint64(nil, uint64(s.Copying.Base))
	if err := b.Set(0, copyingKey(s.Slice), binary.LittleEndian.AppendUint64(v, uint64(s.Copying.BaseEpoch))); err != nil {
		return err
	}
	if !s.Copying.Begun {
		return nil
	}
	return SaveBase(b, s.Slice, s.Copying.At)
}

// dropCopying removes what saveCopying wrote, and what an earlier version did.
func dropCopying(db *meta.DB, b *meta.Batch, s ids.Slice) error {
	stale := [][]byte{copyingKey(s)}
	err := db.ScanPlain(0, delayedKey(s, 0), delayedKey(s+1, 0), func(k, _ []byte) bool {
		stale = append(stale, bytes.Clone(k))
		return true
	})
	for i := 0; err == nil && i < len(stale); i++ {
		err = b.Unset(0, stale[i])
	}
	return err
}

// loadCopying reads what saveCopying wrote. Where an earlier version kept what
// waited for the state, the copy begins anew.
func (r *recovering) loadCopying(db *meta.DB, s ids.Slice) error {
	v, ok, err := db.Plain(0, copyingKey(s))
	if err != nil || !ok {
		return err
	}
	if len(v) < 16 {
		return fault.E(fault.Corrupt, "replog.loadCopying", fmt.Sprintf("slices/%d", s), "the row of an incomplete copy is malformed")
	}
	r.reset(ids.Serial(binary.LittleEndian.Uint64(v)), ids.Epoch(binary.LittleEndian.Uint64(v[8:])), 0)
	return db.ScanPlain(0, delayedKey(s, 0), delayedKey(s+1, 0), func(_, _ []byte) bool {
		r.anew = true
		return false
	})
}
