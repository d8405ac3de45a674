package sharing

import (
	"bytes"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

func TestGiven_NamesThoseThatHaveAChunk(t *testing.T) {
	var now time.Duration
	g := NewGiven(func() time.Duration { return now })
	a := chunk.Sum([]byte("a"))
	give := func(when string, asker ids.Node, avoid []string, want int) {
		t.Helper()
		if got := g.Give(a, asker, avoid); len(got) != want {
			t.Errorf("%s: %v are named, want %d", when, got, want)
		}
	}
	give("nobody has it", "x", nil, 0)
	give("who has it asks again", "x", nil, 0)
	give("another one asks", "y", nil, 1)
	give("who cannot use that one", "y", []string{"x"}, 0)
	give("two have it", "z", nil, 2)
	give("one of them is of no use", "z", []string{"y"}, 1)
	now = givenLife
	give("after a life", "z", nil, 2)
	now = 3 * givenLife
	give("after more than two", "z", nil, 0)
}

func TestGiven_IsBounded(t *testing.T) {
	g := NewGiven(func() time.Duration { return 0 })
	for i := range 3 * givenChunks {
		g.Give(chunk.Sum(chunkOfSize(i, 16)), "x", nil)
	}
	if n := len(g.young) + len(g.old); n > 2*givenChunks {
		t.Errorf("%d chunks are remembered", n)
	}
	a := chunk.Sum([]byte("a"))
	var avoid []string
	for _, n := range []ids.Node{"p", "q", "r", "s", "t"} {
		g.Give(a, n, avoid)
		avoid = append(avoid, string(n))
	}
	if n := len(g.Give(a, "u", nil)); n != mostHolders {
		t.Errorf("%d nodes are named for a chunk, want %d", n, mostHolders)
	}
}

func TestKept_HoldsItsBound(t *testing.T) {
	const size = 64 << 10
	k := newKept(4 * (size + entryCost))
	put := func(i int) { k.put(chunk.Sum(chunkOfSize(i, size)), chunkOfSize(i, size)) }
	has := func(i int) bool { return bytes.Equal(k.get(chunk.Sum(chunkOfSize(i, size))), chunkOfSize(i, size)) }
	for i := range 4 {
		put(i)
	}
	if !has(0) { // and was used last
		t.Error("a chunk is not kept, though there is room")
	}
	put(4)
	put(4)
	if !has(0) || has(1) || !has(4) || k.held() > k.limit {
		t.Errorf("0 kept: %v, 1 kept: %v, 4 kept: %v, %d bytes of %d; what was used least recently is to go", has(0), has(1), has(4), k.held(), k.limit)
	}
	small := newKept(100)
	small.put(chunk.Sum(chunkOfSize(1, size)), chunkOfSize(1, size))
	if small.held() != 0 {
		t.Error("more than the bound is kept")
	}
	k.drop()
	if k.held() != 0 || has(4) {
		t.Error("what was dropped is still there")
	}
}
