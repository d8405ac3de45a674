package transfer

import (
	"bytes"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// TestChains_KeepTheirOrderWhileChunksTravel turns the distances round meanwhile.
func TestChains_KeepTheirOrderWhileChunksTravel(t *testing.T) {
	var now time.Duration
	c := chains{clock: func() time.Duration { return now }}
	row := geoconfig.SliceRow{ID: 7, Epoch: 1, Active: "a"}
	for _, n := range []ids.Node{"a", "b", "c"} {
		row.Members = append(row.Members, geoconfig.Member{Node: n, State: geoconfig.Normal})
	}
	forward := func([]ids.Node) {}
	back := func(nodes []ids.Node) { nodes[1], nodes[2] = nodes[2], nodes[1] }
	check := func(what string, got []ids.Node, want ...ids.Node) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	check("at first", c.of(row, "a", forward), "a", "b", "c")
	for range 3 {
		now += chainLife - time.Second
		check("while chunks travel", c.of(row, "a", back), "a", "b", "c")
	}
	check("another node is nearest", c.of(row, "b", back), "b", "c", "a")
	now += chainLife
	check("after a rest", c.of(row, "b", forward), "b", "a", "c")
	c.forget(row.ID)
	check("after chunks got stuck", c.of(row, "b", back), "b", "c", "a")
	row.Epoch, row.Members = 2, row.Members[:2]
	check("with other members", c.of(row, "b", forward), "b", "a")
	for slice := ids.Slice(100); slice < 100+2*maxChains; slice++ {
		row.ID = slice
		c.of(row, "a", forward)
	}
	if len(c.kept) > maxChains {
		t.Errorf("%d chains are kept", len(c.kept))
	}
}

func TestPart_CutsABodyAnywhere(t *testing.T) {
	body := [][]byte{[]byte("ab"), {}, []byte("cdefg"), []byte("h")}
	for at := range 9 {
		for n := range 9 - at {
			if got := bytes.Join(part(body, at, n), nil); string(got) != "abcdefgh"[at:at+n] {
				t.Errorf("%d bytes from %d on are %q", n, at, got)
			}
		}
	}
}
