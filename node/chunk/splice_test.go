package chunk

import (
	"encoding/binary"
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"pgregory.net/rapid"
)

// shelf keeps nodes by address and counts reads.
type shelf struct {
	nodes map[Address][]byte
	reads int
}

func newShelf() *shelf { return &shelf{nodes: map[Address][]byte{}} }

func (s *shelf) Node(a Address) ([]byte, error) {
	s.reads++
	data, ok := s.nodes[a]
	if !ok {
		return nil, fault.E(fault.Missing, "test.Node", a.String(), "")
	}
	return data, nil
}

func (s *shelf) put(nodes []NewNode) {
	for _, n := range nodes {
		if Sum(n.Data) != n.Address {
			panic("a node is misnamed")
		}
		s.nodes[n.Address] = n.Data
	}
}

// fakeAddress names a chunk that nobody needs to read.
func fakeAddress(n uint64) Address {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return Sum(b[:])
}

// cell is one byte of the naive twin: which byte of which chunk it is.
type cell struct {
	chunk  Address
	offset uint32
}

// twin is a file as a flat slice of cells; zero cells are holes.
type twin []cell

func (w *twin) resize(n uint64) {
	for uint64(len(*w)) < n {
		*w = append(*w, cell{})
	}
	*w = (*w)[:n]
}

func (w *twin) apply(c Change) {
	if c.Truncate {
		w.resize(c.Size)
	}
	for _, e := range c.Extents {
		w.resize(max(uint64(len(*w)), e.End()))
		for i := range e.Length {
			(*w)[e.Offset+i] = cell{}
			if !e.IsHole() {
				(*w)[e.Offset+i] = cell{e.Chunk, e.ChunkOffset + uint32(i)}
			}
		}
	}
	w.resize(max(uint64(len(*w)), c.Extend))
}

func (w twin) stored() (n uint64) {
	for _, c := range w {
		if !c.chunk.IsZero() {
			n++
		}
	}
	return n
}

// check compares [from, to) of a manifest with the twin.
func (w twin) check(s *shelf, root Root, from, to uint64) error {
	at := from
	err := Lookup(s, root, from, to-from, func(e Extent) bool {
		if e.Offset != at || e.Validate() != nil {
			return false
		}
		for i := range e.Length {
			want := w[at+i]
			if e.Chunk != want.chunk || (!e.IsHole() && e.ChunkOffset+uint32(i) != want.offset) {
				return false
			}
		}
		at = e.End()
		return true
	})
	if end := min(to, uint64(len(w))); err == nil && from < end && at != end {
		err = fmt.Errorf("[%d, %d) of %d: wrong or missing at %d", from, to, len(w), at)
	}
	return err
}

// anyChange draws a change for a file of about size bytes.
func anyChange(t *rapid.T, size uint64, id *uint64) Change {
	var c Change
	if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
		c.Truncate, c.Size = true, rapid.Uint64Range(0, size+20).Draw(t, "truncate")
	}
	if rapid.IntRange(0, 7).Draw(t, "extend") == 0 {
		c.Extend = rapid.Uint64Range(0, size+30).Draw(t, "to")
	}
	at := rapid.Uint64Range(0, size+5).Draw(t, "at")
	for range rapid.IntRange(0, 40).Draw(t, "pieces") {
		e := Extent{Offset: at, Length: rapid.Uint64Range(1, 9).Draw(t, "length")}
		if rapid.IntRange(0, 4).Draw(t, "hole") > 0 {
			*id++
			e.Chunk = fakeAddress(*id)
			e.ChunkOffset = rapid.Uint32Range(0, 3).Draw(t, "in")
			e.ChunkSize = e.ChunkOffset + uint32(e.Length) + rapid.Uint32Range(0, 3).Draw(t, "rest")
		}
		c.Extents = append(c.Extents, e)
		at = e.End() + rapid.SampledFrom([]uint64{0, 0, 1, 7, 200}).Draw(t, "gap")
	}
	return c
}

func TestSplice_EqualsAFlatFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fan := rapid.SampledFrom([]int{4, 5, 8, 16}).Draw(t, "fan")
		s, root, w, id := newShelf(), Root{}, twin{}, uint64(0)
		for range rapid.IntRange(1, 25).Draw(t, "changes") {
			c := anyChange(t, uint64(len(w)), &id)
			next, nodes, err := splice(s, root, c, fan)
			if err != nil {
				t.Fatal(err)
			}
			s.put(nodes)
			old, was := root, append(twin(nil), w...)
			w.apply(c)
			root = next
			if root.Size != uint64(len(w)) || root.Stored != w.stored() {
				t.Fatalf("got size %d, stored %d, want %d, %d", root.Size, root.Stored, len(w), w.stored())
			}
			if err := w.check(s, root, 0, root.Size); err != nil {
				t.Fatal(err)
			}
			from := rapid.Uint64Range(0, root.Size+3).Draw(t, "from")
			if err := w.check(s, root, from, from+rapid.Uint64Range(0, 50).Draw(t, "span")); err != nil {
				t.Fatal(err)
			}
			if err := was.check(s, old, 0, old.Size); err != nil {
				t.Fatalf("the old version changed: %v", err)
			}
			if err := shapely(s, root.Address, int(root.Height), root.Size, fan); err != nil {
				t.Fatal(err)
			}
			if err := needed(s, root, nodes); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// needed checks that a version names every new node.
func needed(s *shelf, root Root, nodes []NewNode) error {
	named := map[Address]bool{}
	err := Walk(s, root, func(a Address, _ bool) bool { named[a] = true; return true })
	for _, n := range nodes {
		if !named[n.Address] {
			return fmt.Errorf("node %s is new but nothing names it", n.Address.Short())
		}
	}
	return err
}

// shapely checks that no node is too full and that heights are even.
func shapely(s *shelf, a Address, height int, size uint64, fan int) error {
	if size == 0 {
		return nil
	}
	data, err := s.Node(a)
	if err != nil {
		return err
	}
	if height == 0 {
		extents, err := DecodeExtents(nil, data, 0)
		if err == nil && len(extents) > fan {
			err = fmt.Errorf("a leaf of %d extents", len(extents))
		}
		return err
	}
	kids, err := decodeInner(nil, data)
	if err != nil {
		return err
	}
	if len(kids) > fan {
		return fmt.Errorf("an inner node of %d children", len(kids))
	}
	for _, k := range kids {
		if err := shapely(s, k.address, height-1, k.length, fan); err != nil {
			return err
		}
	}
	return nil
}

func TestBuilder_EqualsSplice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, id := newShelf(), twin{}, uint64(0)
		b := NewBuilder(func(n NewNode) error { s.put([]NewNode{n}); return nil })
		b.fan = rapid.SampledFrom([]int{2, 3, 8}).Draw(t, "fan")
		c := anyChange(t, 0, &id)
		for _, e := range c.Extents {
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
			e.Offset = uint64(len(w))
			w.apply(Change{Extents: []Extent{e}})
		}
		root, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if root.Size != uint64(len(w)) || root.Stored != w.stored() {
			t.Fatalf("got size %d, stored %d, want %d, %d", root.Size, root.Stored, len(w), w.stored())
		}
		if err := w.check(s, root, 0, root.Size); err != nil {
			t.Fatal(err)
		}
		if err := shapely(s, root.Address, int(root.Height), root.Size, b.fan); err != nil {
			t.Fatal(err)
		}
	})
}

// terabyte builds a file of n whole chunks of 64 KiB.
func terabyte(t testing.TB, s *shelf, n int) Root {
	t.Helper()
	b := NewBuilder(func(n NewNode) error { s.nodes[n.Address] = n.Data; return nil })
	for i := range n {
		if err := b.Add(Whole(0, fakeAddress(uint64(i)), 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSplice_OneByteOfATerabyteWritesFewNodes(t *testing.T) {
	s := newShelf()
	root := terabyte(t, s, 1<<18) // 16 GiB of real leaves ...
	rest := Change{Extend: 1 << 40}
	root, nodes, err := Splice(s, root, rest) // ... in a terabyte
	if err != nil {
		t.Fatal(err)
	}
	s.put(nodes)
	s.reads = 0
	_, nodes, err = Splice(s, root, Change{Extents: []Extent{Whole(7<<30+5, fakeAddress(1<<40), 1)}})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range nodes {
		total += len(n.Data)
	}
	if len(nodes) > 5 || s.reads > 5 || total > 48<<10 {
		t.Errorf("one byte read %d nodes and wrote %d of %d bytes", s.reads, len(nodes), total)
	}
}

func TestSplice_AppendTouchesOnlyTheEnd(t *testing.T) {
	s, root := newShelf(), Root{}
	most := 0
	for i := range 3000 {
		s.reads = 0
		next, nodes, err := Splice(s, root, Change{Extents: []Extent{Whole(root.Size, fakeAddress(uint64(i)), 100)}})
		if err != nil {
			t.Fatal(err)
		}
		s.put(nodes)
		most = max(most, s.reads)
		root = next
	}
	if most > 2 || root.Size != 300000 || root.Height != 1 {
		t.Errorf("an append read up to %d nodes; %+v", most, root)
	}
}

func TestSplice_RefusesInvalidChanges(t *testing.T) {
	s := newShelf()
	a := fakeAddress(1)
	tests := []struct {
		name string
		c    Change
		kind fault.Kind
	}{
		{"overlapping", Change{Extents: []Extent{Whole(0, a, 10), Whole(9, a, 10)}}, fault.Invalid},
		{"out of order", Change{Extents: []Extent{Whole(100, a, 10), Whole(0, a, 10)}}, fault.Invalid},
		{"empty", Change{Extents: []Extent{{Offset: 1, Chunk: a}}}, fault.Invalid},
		{"chunk too large", Change{Extents: []Extent{{Length: 1, Chunk: a, ChunkSize: MaxSize + 1}}}, fault.TooLarge},
		{"outside its chunk", Change{Extents: []Extent{{Length: 5, Chunk: a, ChunkOffset: 6, ChunkSize: 10}}}, fault.Invalid},
		{"behind the largest file", Change{Extents: []Extent{Hole(MaxFileSize, 1)}}, fault.TooLarge},
		{"extended too far", Change{Extend: MaxFileSize + 1}, fault.TooLarge},
		{"truncated too far", Change{Truncate: true, Size: MaxFileSize + 1}, fault.TooLarge},
	}
	for _, tt := range tests {
		if _, _, err := Splice(s, Root{}, tt.c); !fault.Is(err, tt.kind) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.kind)
		}
	}
	if _, _, err := Splice(s, Root{Address: a, Size: 10}, Change{Extents: []Extent{Hole(0, 1)}}); !fault.Is(err, fault.Missing) {
		t.Errorf("a node that is not here: got %v, want Missing", err)
	}
}

func TestWalk_SkipsWhatTheCallerKnows(t *testing.T) {
	s := newShelf()
	root := terabyte(t, s, 1000)
	nodes, chunks := map[Address]bool{}, 0
	err := Walk(s, root, func(a Address, isNode bool) bool {
		if isNode {
			nodes[a] = true
		} else {
			chunks++
		}
		return true
	})
	if err != nil || len(nodes) != 5 || chunks != 1000 {
		t.Fatalf("visited %d nodes, %d chunks, %v, want 5 and 1000", len(nodes), chunks, err)
	}
	next, fresh, err := Splice(s, root, Change{Extents: []Extent{Whole(10, fakeAddress(1<<40), 5)}})
	if err != nil {
		t.Fatal(err)
	}
	s.put(fresh)
	seen := 0
	err = Walk(s, next, func(a Address, isNode bool) bool {
		seen++
		return !nodes[a]
	})
	if err != nil || seen > 1+5+MaxFan+2 {
		t.Errorf("the difference visited %d, %v", seen, err)
	}
}

func FuzzNodes(f *testing.F) {
	a := fakeAddress(1)
	f.Add(AppendExtents(nil, []Extent{Whole(0, a, 100), Hole(100, 1<<62), {Offset: 100 + 1<<62, Length: 3, Chunk: a, ChunkOffset: 1, ChunkSize: 9}}))
	f.Add(appendInner(nil, []ref{{a, 10, 5}, {a, 1, 0}}))
	f.Add([]byte{leafKind, nodeVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if extents, err := DecodeExtents(nil, data, 0); err == nil {
			var at uint64
			for _, e := range extents {
				if e.Offset != at || e.Validate() != nil {
					t.Fatalf("a decoded extent is bad: %+v", e)
				}
				at = e.End()
			}
			again, err := DecodeExtents(nil, AppendExtents(nil, extents), 0)
			if err != nil || len(again) != len(extents) {
				t.Fatalf("encoded again it is another: %v", err)
			}
		}
		if kids, err := decodeInner(nil, data); err == nil && string(appendInner(nil, kids)) != string(data) {
			t.Fatal("encoded again it is another")
		}
		_ = Refs(data, func(Address, bool) {})
		s := newShelf()
		s.nodes[a] = data
		for h := range uint8(3) {
			root := Root{Address: a, Height: h, Size: 100}
			_ = Walk(s, root, func(Address, bool) bool { return true })
			_, _ = Extents(s, root, 3, 50, 10)
			_, _, _ = Splice(s, root, Change{Extents: []Extent{Hole(10, 5)}, Extend: 200})
		}
	})
}

func BenchmarkSplice4KAppendToLeaf(b *testing.B) {
	s := newShelf()
	root := terabyte(b, s, 200)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		_, _, err := Splice(s, root, Change{Extents: []Extent{Whole(i%200*65536+4096, fakeAddress(1<<40), 4096)}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	s := newShelf()
	root := terabyte(b, s, 1<<16)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		_ = Lookup(s, root, i*7919%(1<<16)*65536, 4096, func(Extent) bool { return true })
	}
}
