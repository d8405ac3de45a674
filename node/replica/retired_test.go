package replica

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// TestTick_SkipsRemovedSlices takes a node out of a slice and back in. In
// between only the row stays. It answers late messages, takes no part in the
// ticks, and is not replaced by an older row.
func TestTick_SkipsRemovedSlices(t *testing.T) {
	tr := newTrio(t)
	c := tr.nodes["c"]
	old := c.groups[1].row
	without := func(epoch ids.Epoch) *geoconfig.SliceRow {
		row := old.Clone()
		row.Epoch, row.Members = epoch, row.Members[:2]
		return &row
	}
	gone := without(2)
	c.Learn(tr.now, gone)
	c.Persisted(tr.now, c.Flush(tr.now).Records[0].Position+9)
	ticked := func(n *Node, want int, when string) {
		t.Helper()
		n.Tick(tr.now)
		if len(n.order) != want {
			t.Fatalf("%s: %d slices are ticked, want %d", when, len(n.order), want)
		}
	}
	ticked(c, 0, "removed")

	c.Learn(tr.now, old)
	c.Receive(tr.now, "a", &Message{Kind: Append, Slice: 1, Epoch: 1, Boot: 1, Row: old})
	ticked(c, 0, "after a late message")
	out := c.Flush(tr.now)
	if len(out.Messages) != 1 || out.Messages[0].Message.Kind != Refuse || out.Messages[0].Message.Row != gone {
		t.Errorf("a late message gets %+v, want the row that removed the node", out.Messages)
	}
	c.Learn(tr.now, without(3))
	ticked(c, 0, "removed still")

	r := New(Config{Self: "c", Incarnation: 1, Boot: 9, Start: tr.now})
	if err := r.Restore(tr.now, Restored{Row: *gone}); err != nil {
		t.Fatal(err)
	}
	ticked(r, 0, "restored")

	for _, n := range []*Node{c, r} {
		for epoch := ids.Epoch(4); epoch < 6; epoch++ {
			back := old.Clone()
			back.Epoch, back.Members[2].State = epoch, geoconfig.Migrating
			n.Learn(tr.now, &back)
			ticked(n, 1, "taken again")
		}
		n.Persisted(tr.now, n.position)
		tr.now += time.Hour
		n.Tick(tr.now)
		if s, ok := n.Status(1); !ok || s.Role != RoleJunior {
			t.Errorf("taken again, it is %v", s.Role)
		}
	}
}
