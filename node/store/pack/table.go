package pack

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"cartwheel.dev/node/chunk"
)

// tableShards is a power of two.
const tableShards = 64

// location says where a body lies: pack 20 bits, stream offset in units 24,
// length 20.
type location uint64

func newLocation(pack uint32, offset int64, length int) location {
	return location(uint64(pack)<<44 | uint64(offset/unit)<<20 | uint64(length))
}

func (l location) pack() uint32  { return uint32(l >> 44) }
func (l location) offset() int64 { return int64(l>>20&(1<<24-1)) * unit }
func (l location) length() int   { return int(l & (1<<20 - 1)) }

// slot is one chunk in 24 bytes: 128 bits of a keyed hash of its address stand
// for the address. The key is drawn at every start, so that nobody can make two
// addresses meet.
type slot struct {
	a, b uint64
	at   location // 0: empty, since offset 0 of pack 0 is a header
}

// table is the index in memory: open addressing, in shards that grow apart.
type table struct {
	seedA, seedB maphash.Seed
	shards       [tableShards]tableShard
}

type tableShard struct {
	mu    sync.RWMutex // guards what follows
	slots []slot       // length a power of two, or 0
	used  int
}

func newTable() *table { return &table{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed()} }

// sum hashes an address. The address is a hash already: its words, keyed, are
// enough for the second half.
func (t *table) sum(a *chunk.Address) (uint64, uint64) {
	return maphash.Bytes(t.seedA, a[:]), maphash.Bytes(t.seedB, a[:])
}

func (t *table) get(a *chunk.Address) (location, bool) {
	x, y := t.sum(a)
	s := &t.shards[x>>58]
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i, ok := s.find(x, y); ok {
		return s.slots[i].at, true
	}
	return 0, false
}

// add puts a chunk in, unless it is there: then the first location stands.
func (t *table) add(a *chunk.Address, at location) bool {
	x, y := t.sum(a)
	s := &t.shards[x>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used*4 >= len(s.slots)*3 {
		s.grow()
	}
	i, ok := s.find(x, y)
	if ok {
		return false
	}
	s.slots[i] = slot{x, y, at}
	s.used++
	return true
}

// replace moves a chunk to another location, if it is still at the old one.
func (t *table) replace(a *chunk.Address, old, at location) bool {
	x, y := t.sum(a)
	s := &t.shards[x>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.find(x, y)
	if !ok || s.slots[i].at != old {
		return false
	}
	s.slots[i].at = at
	return true
}

// remove takes a chunk out, if it is at the location given, closes the gap, and
// reports whether it did.
func (t *table) remove(a *chunk.Address, at location) bool {
	x, y := t.sum(a)
	s := &t.shards[x>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.find(x, y)
	if !ok || s.slots[i].at != at {
		return false
	}
	s.clearLocked(i)
	return true
}

// clearLocked empties a slot and closes the gap. Callers hold mu.
func (s *tableShard) clearLocked(i int) {
	mask := len(s.slots) - 1
	for j := (i + 1) & mask; s.slots[j].at != 0; j = (j + 1) & mask {
		home := int(s.slots[j].a) & mask
		if (j-home)&mask >= (j-i)&mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	s.used--
}

// dropBut takes out the chunks that lie in a pack at none of the locations to keep. It
// returns how many they are, and their bytes.
func (t *table) dropBut(pack uint32, keep map[location]bool) (count int, bytes int64) {
	for n := range t.shards {
		s := &t.shards[n]
		s.mu.Lock()
		for i := 0; i < len(s.slots); {
			e := s.slots[i]
			if e.at == 0 || e.at.pack() != pack || keep[e.at] {
				i++
				continue
			}
			s.clearLocked(i) // another chunk may have come to this slot
			count, bytes = count+1, bytes+int64(e.at.length())
		}
		s.mu.Unlock()
	}
	return count, bytes
}

// find returns the slot of a chunk, or the empty one where it would go.
func (s *tableShard) find(x, y uint64) (int, bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	mask := len(s.slots) - 1
	for i := int(x) & mask; ; i = (i + 1) & mask {
		e := &s.slots[i]
		if e.at == 0 {
			return i, false
		}
		if e.a == x && e.b == y {
			return i, true
		}
	}
}

func (s *tableShard) grow() {
	old := s.slots
	s.slots = make([]slot, max(64, len(old)*2))
	for _, e := range old {
		if e.at != 0 {
			i, _ := s.find(e.a, e.b)
			s.slots[i] = e
		}
	}
}

// len counts the chunks.
func (t *table) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.RLock()
		n += s.used
		s.mu.RUnlock()
	}
	return n
}

// encodeEntry writes a chunk of a pack's directory or index.
func encodeEntry(b []byte, a *chunk.Address, length uint32, extra uint32) {
	copy(b, a[:])
	binary.LittleEndian.PutUint32(b[chunk.AddressSize:], length)
	binary.LittleEndian.PutUint32(b[chunk.AddressSize+4:], extra)
}

func decodeEntry(b []byte) (a chunk.Address, length, extra uint32) {
	copy(a[:], b)
	return a, binary.LittleEndian.Uint32(b[chunk.AddressSize:]), binary.LittleEndian.Uint32(b[chunk.AddressSize+4:])
}
