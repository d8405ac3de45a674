package transfer

import (
	"fmt"
	"slices"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// TestSharer_SpreadsChunksAndKeepsThemThere takes one of four nodes away: only its
// own chunks go to others.
func TestSharer_SpreadsChunksAndKeepsThemThere(t *testing.T) {
	nodes := []ids.Node{"n1", "n2", "n3", "n4"}
	turned := slices.Clone(nodes)
	slices.Reverse(turned)
	count := map[ids.Node]int{}
	for i := range 1000 {
		a := chunk.Sum(fmt.Append(nil, i))
		n := sharer(nodes, a)
		count[n]++
		if other := sharer(turned, a); other != n {
			t.Fatalf("chunk %d: %s or %s, as the nodes are listed", i, n, other)
		}
		if left := sharer(nodes[:3], a); n != "n4" && left != n {
			t.Errorf("chunk %d goes from %s to %s although n4 went", i, n, left)
		}
	}
	for _, n := range nodes {
		if count[n] < 150 || count[n] > 350 {
			t.Errorf("%s has %d of 1,000 chunks, want about a quarter", n, count[n])
		}
	}
}
