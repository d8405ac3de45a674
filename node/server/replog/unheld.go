package replog

import (
	"encoding/binary"
	"fmt"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
)

// keyUnheld of a slice, followed by a serial (8 bytes, big-endian): an applied
// entry whose chunks are not all on this node's disk, as its epoch (8 bytes,
// little-endian) and the addresses of its chunks. The journal may be trimmed of
// the entry itself.
const keyUnheld = "\x00unheld"

func unheldKey(serial ids.Serial) []byte {
	return binary.BigEndian.AppendUint64([]byte(keyUnheld), uint64(serial))
}

// SaveUnheld notes that an entry is applied though chunks that it names are not
// here, in the batch that applies it.
func SaveUnheld(b *meta.Batch, e *replica.Entry) error {
	v := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(e.Chunks)), uint64(e.Epoch))
	return b.Set(e.Slice, unheldKey(e.Serial), append(v, e.Chunks...))
}

// DropUnheld removes the note: the chunks are here now.
func DropUnheld(b *meta.Batch, s ids.Slice, serial ids.Serial) error {
	return b.Unset(s, unheldKey(serial))
}

// EachUnheld calls f for the entries of a slice that SaveUnheld noted, by serial.
// The addresses are valid until f returns.
func EachUnheld(db *meta.DB, s ids.Slice, f func(e replica.EntryID, addresses []byte)) error {
	const op fault.Op = "replog.EachUnheld"
	var bad error
	err := db.ScanPlain(s, unheldKey(0), []byte(keyUnheld+"\xff\xff\xff\xff\xff\xff\xff\xff\xff"), func(k, v []byte) bool {
		if len(k) != len(keyUnheld)+8 || len(v) < 8 {
			bad = fault.E(fault.Corrupt, op, fmt.Sprintf("slices/%d", s), "a note of missing chunks is malformed")
			return false
		}
		serial := binary.BigEndian.Uint64(k[len(keyUnheld):])
		f(replica.EntryID{Serial: ids.Serial(serial), Epoch: ids.Epoch(binary.LittleEndian.Uint64(v))}, v[8:])
		return true
	})
	if err == nil {
		err = bad
	}
	return err
}

// IsUnheld reports whether a row of the plain area is a note of SaveUnheld, and returns
// the addresses that it has, which share the value's memory.
func IsUnheld(key, value []byte) (addresses []byte, ok bool) {
	if len(key) != len(keyUnheld)+8 || string(key[:len(keyUnheld)]) != keyUnheld || len(value) < 8 {
		return nil, false
	}
	return value[8:], true
}
