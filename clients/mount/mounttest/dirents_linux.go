package mounttest

import (
	"bytes"
	"encoding/binary"
)

// parseDirents reads what getdents64 filled in: inode number, offset, length of
// the record, type, and the name up to a zero byte.
func parseDirents(buf []byte, into map[string]uint64) {
	const nameAt = 19
	for len(buf) > nameAt {
		length := binary.NativeEndian.Uint16(buf[16:])
		name := buf[nameAt:length]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		into[string(name)] = binary.NativeEndian.Uint64(buf)
		buf = buf[length:]
	}
}
