package meta

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/ids"
)

// The areas of the key space: the first byte of every key.
const (
	areaCurrent byte = 1 // newest versions: slice, key
	areaHistory byte = 2 // older versions: slice, escaped key, descending time
	areaApplied byte = 3 // applied serials: slice
	areaPlain   byte = 4 // unversioned: slice, key
	areaFormat  byte = 5 // one row: the format's number
)

// Flags before the value in the history area.
const (
	flagValue byte = 0
	flagGone  byte = 1
)

const prefixLen = 4

func appendPrefix(b []byte, area byte, s ids.Slice) []byte {
	return append(b, area, byte(s>>16), byte(s>>8), byte(s))
}

func appendKey(b []byte, area byte, s ids.Slice, key []byte) []byte {
	return append(appendPrefix(b, area, s), key...)
}

// appendHistoryKey appends the prefix and the key, escaped so that all versions
// of a key lie together and keys keep their order: 0 becomes 0 255, the end is
// 0 1.
func appendHistoryKey(b []byte, s ids.Slice, key []byte) []byte {
	b = appendPrefix(b, areaHistory, s)
	for _, c := range key {
		b = append(b, c)
		if c == 0 {
			b = append(b, 255)
		}
	}
	return append(b, 0, 1)
}

// appendTime appends a time so that the newest sorts first.
func appendTime(b []byte, ts uint64) []byte { return binary.BigEndian.AppendUint64(b, ^ts) }

// splitHistoryKey takes a history key apart; key is appended to buf.
func splitHistoryKey(full, buf []byte) (key []byte, ts uint64, ok bool) {
	if len(full) < prefixLen+2+8 {
		return nil, 0, false
	}
	body, tail := full[prefixLen:len(full)-8], full[len(full)-8:]
	if body[len(body)-2] != 0 || body[len(body)-1] != 1 {
		return nil, 0, false
	}
	body = body[:len(body)-2]
	for i := 0; i < len(body); i++ {
		buf = append(buf, body[i])
		if body[i] == 0 {
			i++ // the 255 behind it
		}
	}
	return buf, ^binary.BigEndian.Uint64(tail), true
}

// after returns the first prefix behind those of a slice in an area.
func after(area byte, s ids.Slice) []byte {
	if s == ids.MaxSlice {
		return []byte{area + 1}
	}
	return appendPrefix(nil, area, s+1)
}
