package plan_test

import (
	"fmt"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// wide returns a new node whose row, as it is written, takes so many bytes.
func wide(t *testing.T, id ids.Node, size int) geoconfig.Node {
	t.Helper()
	n := geoconfig.Node{ID: id, Site: "paris"}
	for range 32 {
		n.Addresses = append(n.Addresses, "/"+strings.Repeat("<", 330)) // six bytes each in JSON
	}
	n.Revision = nextRev
	missing := size - len(encode(t, n))
	n.Revision = 0
	for i := range n.Addresses {
		more := min(missing, 180)
		n.Addresses[i] += strings.Repeat("x", more)
		missing -= more
	}
	if missing != 0 {
		t.Fatalf("the row of %d bytes lacks %d", size, missing)
	}
	return n
}

func TestBatch_BoundsARow(t *testing.T) {
	v := seeded(t)
	writes := taken(t, v, geoconfig.Batch{Nodes: []geoconfig.Node{wide(t, "n4", geoconfig.MaxRowBytes)}})
	if got := len(writes[0].Body); got != geoconfig.MaxRowBytes {
		t.Fatalf("the row takes %d bytes, want %d", got, geoconfig.MaxRowBytes)
	}
	over := geoconfig.Batch{Nodes: []geoconfig.Node{wide(t, "n4", geoconfig.MaxRowBytes+1)}}
	refused(t, v, over, fault.TooLarge, "nodes/n4")
}

func TestBatch_BoundsTheBytesOfItsRows(t *testing.T) {
	v := seeded(t)
	var full geoconfig.Batch
	const rows = geoconfig.MaxBatchBytes / geoconfig.MaxRowBytes
	for i := range rows {
		full.Nodes = append(full.Nodes, wide(t, ids.Node(fmt.Sprint("w", i)), geoconfig.MaxRowBytes))
	}
	taken(t, v, full)
	full.Remove = []geoconfig.Removal{{Key: ann().RowKey(), Revision: seedRev}}
	taken(t, v, full) // a removal takes no bytes
	full.Sites = []geoconfig.Site{{Name: "rome"}}
	refused(t, v, full, fault.TooLarge, fmt.Sprint("nodes/w", rows-1))
}
