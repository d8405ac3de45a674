package journal

import (
	"encoding/binary"
	"hash/crc32"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/disk"
)

// A segment file is one header block and then frames, each starting on a block
// of its own. docs/formats/journal.md shows the bytes.
const (
	segmentMagic = 0x314c4a57_4c524143 // "CARLWJL1"
	frameMagic   = 0x4d415246          // "FRAM"
	version      = 1
	frameHeader  = 48
	recordHeader = 8
	maxRecord    = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segmentHead is the content of a segment's first block.
type segmentHead struct {
	key      uint64
	sequence uint64 // the segment holds positions from sequence*SegmentBytes
	bytes    int64
	tail     Position // what was trimmed when the header was written
}

func (h segmentHead) encode(block []byte) {
	clear(block)
	binary.LittleEndian.PutUint64(block, segmentMagic)
	binary.LittleEndian.PutUint32(block[8:], version)
	binary.LittleEndian.PutUint64(block[16:], h.key)
	binary.LittleEndian.PutUint64(block[24:], h.sequence)
	binary.LittleEndian.PutUint64(block[32:], uint64(h.bytes))
	binary.LittleEndian.PutUint64(block[40:], uint64(h.tail))
	binary.LittleEndian.PutUint32(block[48:], crc32.Checksum(block[:48], castagnoli))
}

func decodeSegmentHead(block []byte, name string) (h segmentHead, ok bool, err error) {
	if binary.LittleEndian.Uint64(block) != segmentMagic ||
		binary.LittleEndian.Uint32(block[48:]) != crc32.Checksum(block[:48], castagnoli) {
		return h, false, nil
	}
	if v := binary.LittleEndian.Uint32(block[8:]); v != version {
		return h, false, fault.Errorf(fault.NewerVersion, "journal.Open", name, "written in format %d, this program knows %d", v, version)
	}
	h.key = binary.LittleEndian.Uint64(block[16:])
	h.sequence = binary.LittleEndian.Uint64(block[24:])
	h.bytes = int64(binary.LittleEndian.Uint64(block[32:]))
	h.tail = Position(binary.LittleEndian.Uint64(block[40:]))
	return h, true, nil
}

// frameHead starts a frame. A frame follows the one that ends at prev, so that
// the chain goes on over the end of a segment; tail lets a start skip what was
// trimmed.
type frameHead struct {
	position Position
	prev     Position
	tail     Position
	length   uint32 // of the records behind the header
	body     uint32 // CRC32C of the records
}

func (h frameHead) encode(b []byte, key uint64) {
	binary.LittleEndian.PutUint32(b, frameMagic)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint64(b[8:], key)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.position))
	binary.LittleEndian.PutUint64(b[24:], uint64(h.prev))
	binary.LittleEndian.PutUint64(b[32:], uint64(h.tail))
	binary.LittleEndian.PutUint32(b[40:], h.body)
	binary.LittleEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
}

// decodeFrameHead reports whether b starts with a frame of this journal that
// was written for this position.
func decodeFrameHead(b []byte, key uint64, at Position) (h frameHead, ok bool) {
	if binary.LittleEndian.Uint32(b) != frameMagic || binary.LittleEndian.Uint64(b[8:]) != key {
		return h, false
	}
	if binary.LittleEndian.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli) {
		return h, false
	}
	h.length = binary.LittleEndian.Uint32(b[4:])
	h.position = Position(binary.LittleEndian.Uint64(b[16:]))
	h.prev = Position(binary.LittleEndian.Uint64(b[24:]))
	h.tail = Position(binary.LittleEndian.Uint64(b[32:]))
	h.body = binary.LittleEndian.Uint32(b[40:])
	return h, h.position == at
}

// end returns where the frame ends: the next one starts there at the earliest.
func (h frameHead) end() Position {
	return h.position + Position(disk.RoundUp(frameHeader+int64(h.length)))
}

// appendRecord adds a record to a frame.
func appendRecord(b []byte, r *Record) []byte {
	n := r.size()
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Slice)<<8|uint32(r.Kind))
	for _, p := range r.Pieces {
		b = append(b, p...)
	}
	return b
}

// eachRecord walks the records of a frame; the payload is only valid in fn.
func eachRecord(body []byte, at Position, fn func(Position, Record) error) error {
	off := 0
	for off < len(body) {
		if len(body)-off < recordHeader {
			return fault.E(fault.Corrupt, "journal.Replay", "", "a record is cut short")
		}
		n := int(binary.LittleEndian.Uint32(body[off:]))
		tag := binary.LittleEndian.Uint32(body[off+4:])
		start := off + recordHeader
		if n > maxRecord || n > len(body)-start {
			return fault.E(fault.Corrupt, "journal.Replay", "", "a record is longer than its frame")
		}
		r := Record{Slice: ids.Slice(tag >> 8), Kind: Kind(tag), Pieces: [][]byte{body[start : start+n : start+n]}}
		if err := fn(at+Position(off), r); err != nil {
			return err
		}
		off = start + n
	}
	return nil
}
