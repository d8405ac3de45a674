package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
)

// EachHold calls f with the client of each hold in a slice.
func EachHold(v View, f func(client uint64)) error {
	err := v.Scan([]byte{keyHeld}, []byte{keyHeld + 1}, func(key, _ []byte) bool {
		f(binary.BigEndian.Uint64(key[1:]))
		return true
	})
	return fault.Wrap(fault.IO, "tree.EachHold", "", err)
}

// HoldChange returns how many more holds a client has by a mutation: 1, -1, or 0
// where it is about something else.
func HoldChange(m *Mutation) (client uint64, by int) {
	if len(m.Key) != len(pairKey(keyHeld, 0, 0)) || m.Key[0] != keyHeld {
		return 0, 0
	}
	if by = 1; m.Value == nil {
		by = -1
	}
	return binary.BigEndian.Uint64(m.Key[1:]), by
}
