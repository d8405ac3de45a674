package writelog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"cartwheel.dev/geo-config/ids"
)

// The format of a file: docs/formats/write-journal.md. Kinds below 64 are
// content.WriteKind.
const (
	magic     = "cartwheel wlog 2"
	headSize  = 4 + 4 + 1 + 6*8 + 2 // checksum, length of what follows, kind, six numbers, length of who
	maxData   = 16 << 20
	kindBegin = 64
	kindDone  = 65
)

func segmentName(number uint64) string { return fmt.Sprintf("%016x.wlog", number) }

// record is one entry of the journal.
type record struct {
	kind    byte
	object  ids.Object
	number  uint64
	version uint64
	offset  uint64 // of kindDone: the first number that is done
	length  uint64
	first   uint64 // of a write and of kindDone: the object's lowest number that was live then; 0: not said
	who     []byte // of a write: who made it
	data    []byte
}

// size is how long the record is in a file.
func (r *record) size() int64 { return headSize + int64(len(r.who)+len(r.data)) }

// head encodes everything but the data, which follows it.
func (r *record) head(dst []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.who)+len(r.data)))
	dst = append(dst, r.kind)
	for _, v := range [...]uint64{uint64(r.object), r.number, r.version, r.offset, r.length, r.first} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(r.who)))
	dst = append(dst, r.who...)
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(dst[at:], crc32.Update(crc32.Update(0, table, dst[at+4:]), table, r.data))
	return dst
}

// decode reads the record at the start of b and returns its length, or 0 where
// there is none that is whole.
func decode(b []byte) (r record, n int) {
	if len(b) < headSize {
		return r, 0
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > maxData || int(size) > len(b)-headSize {
		return r, 0
	}
	n = headSize + int(size)
	if crc32.Checksum(b[4:n], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b) {
		return r, 0
	}
	who := int(binary.LittleEndian.Uint16(b[headSize-2:]))
	if who > int(size) {
		return r, 0
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[9+8*i:]) }
	return record{
		kind: b[8], object: ids.Object(u(0)), number: u(1), version: u(2), offset: u(3), length: u(4), first: u(5),
		who: b[headSize:][:who:who], data: b[headSize+who : n : n],
	}, n
}
