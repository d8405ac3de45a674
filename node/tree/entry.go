package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Entry is one name's meaning: an object, made by an operation. A name has one
// entry; only directories that merge (docs/design.md, 7) have more for a while,
// and then the highest creation is what a lookup finds.
type Entry struct {
	Object   ids.Object
	Creation uint64 // the operation that made the entry
	Type     uint32 // type bits of the object's mode
}

const (
	entryVersion = 1
	entrySize    = 17
)

// appendEntries encodes a name's entries, the highest creation first.
func appendEntries(dst []byte, entries ...Entry) []byte {
	dst = append(dst, entryVersion)
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Object))
		dst = binary.BigEndian.AppendUint64(dst, e.Creation)
		dst = append(dst, byte(e.Type>>12))
	}
	return dst
}

// firstEntry returns the entry that a lookup finds; ok is false where there is
// none.
func firstEntry(value []byte) (e Entry, ok bool, err error) {
	const op fault.Op = "tree.firstEntry"
	if len(value) == 0 || value[0] != entryVersion {
		var v byte
		if len(value) > 0 {
			v = value[0]
		}
		return e, false, newer(op, "", v, entryVersion)
	}
	if len(value) == 1 {
		return e, false, nil
	}
	if (len(value)-1)%entrySize != 0 {
		return e, false, fault.E(fault.Corrupt, op, "", "an entry is malformed")
	}
	e.Object = ids.Object(binary.BigEndian.Uint64(value[1:]))
	e.Creation = binary.BigEndian.Uint64(value[9:])
	e.Type = uint32(value[17]) << 12
	return e, true, nil
}

// otherEntries returns what a name keeps when its first entry goes: nil where
// nothing is left.
func otherEntries(value []byte) []byte {
	if len(value) <= 1+entrySize {
		return nil
	}
	return append([]byte{entryVersion}, value[1+entrySize:]...)
}
