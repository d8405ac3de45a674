package pack

import (
	"encoding/binary"
	"hash/crc32"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// A pack is a header sector and then sectors of payload, each with its own
// CRC32C, so that any range is checked by reading its sectors alone. The
// payloads joined are the pack's stream; a batch is a directory and the bodies
// of its chunks, dense in the stream, starting on a sector. docs/formats/pack.md
// shows the bytes.
const (
	sectorSize  = disk.Block
	sectorData  = sectorSize - 4
	packMagic   = 0x314b5057_4c524143 // "CARLWPK1"
	version     = 1
	batchHeader = 48
	entrySize   = chunk.AddressSize + 8
	unit        = 16 // bodies start at multiples of it in the stream

	// MaxChunk is the longest body that a pack takes, in bytes.
	MaxChunk = 1<<20 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packHead is the content of a pack's first sector. The key is random: it makes
// batch headers and sector sums of this pack unlike those of any other.
type packHead struct {
	id  uint32
	key uint64
}

func (h packHead) encode(b []byte) {
	clear(b[:sectorSize])
	binary.LittleEndian.PutUint64(b, packMagic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], h.id)
	binary.LittleEndian.PutUint64(b[16:], h.key)
	binary.LittleEndian.PutUint32(b[24:], crc32.Checksum(b[:24], castagnoli))
}

func decodePackHead(b []byte, name string) (h packHead, ok bool, err error) {
	if binary.LittleEndian.Uint64(b) != packMagic || binary.LittleEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return h, false, nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return h, false, fault.Errorf(fault.NewerVersion, "pack.Open", name, "written in format %d, this program knows %d", v, version)
	}
	h.id = binary.LittleEndian.Uint32(b[12:])
	h.key = binary.LittleEndian.Uint64(b[16:])
	return h, true, nil
}

// seed is what the sum of a sector starts from: it ties the sector to its pack
// and place, so that one that was written elsewhere does not pass.
func seed(key uint64, sector int64) uint32 {
	return uint32(key) ^ uint32(key>>32) ^ uint32(sector)*0x9e3779b1
}

// sealSector sets the sum of a sector.
func sealSector(s []byte, key uint64, index int64) {
	binary.LittleEndian.PutUint32(s[sectorData:], crc32.Update(seed(key, index), castagnoli, s[:sectorData]))
}

func sectorGood(s []byte, key uint64, index int64) bool {
	return binary.LittleEndian.Uint32(s[sectorData:]) == crc32.Update(seed(key, index), castagnoli, s[:sectorData])
}

// batchHead starts a batch's stream; the directory follows it.
type batchHead struct {
	sectors uint32 // of the whole batch
	count   uint32
	written uint64 // wall time in seconds, for people
}

func (h batchHead) encode(b []byte, key uint64, sector int64) {
	clear(b[:batchHeader])
	binary.LittleEndian.PutUint64(b, ^key)
	binary.LittleEndian.PutUint64(b[8:], uint64(sector))
	binary.LittleEndian.PutUint32(b[16:], h.sectors)
	binary.LittleEndian.PutUint32(b[20:], h.count)
	binary.LittleEndian.PutUint64(b[24:], h.written)
}

// decodeBatchHead reads the header at the start of a good sector.
func decodeBatchHead(s []byte, key uint64, sector int64) (h batchHead, ok bool) {
	if binary.LittleEndian.Uint64(s) != ^key || binary.LittleEndian.Uint64(s[8:]) != uint64(sector) {
		return h, false
	}
	h.sectors = binary.LittleEndian.Uint32(s[16:])
	h.count = binary.LittleEndian.Uint32(s[20:])
	h.written = binary.LittleEndian.Uint64(s[24:])
	return h, h.sectors > 0
}

// roundUnit rounds up to where a body may start.
func roundUnit(n int64) int64 { return (n + unit - 1) &^ (unit - 1) }

// layout says where the bodies of a batch lie in the stream behind its first
// byte, and how many sectors it takes. The base is the stream offset of the
// batch: bodies are aligned in the pack's stream, not in the batch.
func layout(base int64, lengths func(i int) int, count int) (offsets []int64, sectors int64) {
	offsets = make([]int64, count)
	at := base + batchHeader + int64(count)*entrySize
	for i := range offsets {
		at = roundUnit(at)
		offsets[i] = at
		at += int64(lengths(i))
	}
	return offsets, (at - base + sectorData - 1) / sectorData
}
