package pack

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"cartwheel.dev/node/chunk"
)

// TestTable_EqualsAMap plays random changes on the table and on a map.
func TestTable_EqualsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	tab, twin := newTable(), map[chunk.Address]location{}
	address := func() (a chunk.Address) {
		binary.LittleEndian.PutUint64(a[:], uint64(rng.IntN(3000)))
		return a
	}
	for i := range 40000 {
		a := address()
		at := newLocation(uint32(1+rng.IntN(1000)), int64(rng.IntN(1<<24))*unit, 1+rng.IntN(MaxChunk))
		switch rng.IntN(4) {
		case 0, 1:
			_, have := twin[a]
			if tab.add(&a, at) == have {
				t.Fatalf("step %d: add said the other thing", i)
			}
			if !have {
				twin[a] = at
			}
		case 2:
			if old, ok := twin[a]; ok {
				tab.remove(&a, old)
				delete(twin, a)
			}
		case 3:
			got, ok := tab.get(&a)
			want, have := twin[a]
			if ok != have || got != want {
				t.Fatalf("step %d: got %v %v, want %v %v", i, got, ok, want, have)
			}
		}
	}
	if tab.len() != len(twin) {
		t.Errorf("got %d, want %d", tab.len(), len(twin))
	}
	for a, want := range twin {
		if got, ok := tab.get(&a); !ok || got != want {
			t.Fatalf("lost %v", a)
		}
	}
}

func TestLocation_KeepsItsParts(t *testing.T) {
	l := newLocation(1<<20-1, (1<<24-1)*unit, MaxChunk)
	if l.pack() != 1<<20-1 || l.offset() != (1<<24-1)*unit || l.length() != MaxChunk {
		t.Errorf("got %d %d %d", l.pack(), l.offset(), l.length())
	}
}
