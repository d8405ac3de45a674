package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestPlan_EmptiesNodesDownToTheLowMark(t *testing.T) {
	w := world("a1:95 a2:10 a3:90 b1:20")
	for i := range w.Nodes {
		w.Nodes[i].Incarnation = 1
	}
	held := []Held{slice(1, 100, 0, "a1 b1"), slice(2, 90, 0, "a1 b1"), slice(3, 80, 0, "a1 b1"), slice(4, 150, 0, "a3 b1"), slice(5, 300, 0, "b1 a2")}
	moves, stuck := Plan(w.Nodes, held, func(ids.Node) bool { return false }, w.Marks)
	if want := "[{1 a1 a2 100} {2 a1 a2 90} {3 a1 a2 80} {4 a3 a2 150}]"; fmt.Sprint(moves) != want || len(stuck) != 0 {
		t.Errorf("got %v, stuck %v; want %s", moves, stuck, want)
	}
	if held[0].Row.Active != "a1" || w.Nodes[0].UsedBytes != 950 {
		t.Error("the plan changed what it was made from")
	}
	moves, stuck = Plan(w.Nodes, held, func(id ids.Node) bool { return id == "a2" }, w.Marks)
	if len(moves) != 0 || fmt.Sprint(stuck) != "[{a1 a no_taker} {a3 a no_taker}]" {
		t.Errorf("got %v, stuck %v where the empty node is away", moves, stuck)
	}
}

// TestPlan_EndsAndKeepsPolicies draws clusters. Each plan ends, no node takes what it
// would have to give away, none goes below its low mark by more than one slice, and each
// slice has as many copies as before, on different nodes.
func TestPlan_EndsAndKeepsPolicies(t *testing.T) {
	moved := 0
	for seed := range uint64(500) {
		draw := rand.New(rand.NewPCG(seed, 1))
		var nodes []geoconfig.Node
		for site := range 1 + draw.IntN(3) {
			for i := range 2 + draw.IntN(3) {
				name := string(rune('a'+site)) + string(rune('1'+i))
				nodes = append(nodes, geoconfig.Node{ID: ids.Node(name), Site: ids.Site(name[:1]), Incarnation: 1, CapacityBytes: 1000, UsedBytes: int64(draw.IntN(1000))})
			}
		}
		var held []Held
		for id := range ids.Slice(2 + draw.IntN(20)) {
			var members string
			for _, i := range draw.Perm(len(nodes))[:1+draw.IntN(2)] {
				members += string(nodes[i].ID) + " "
			}
			held = append(held, slice(id+1, int64(draw.IntN(150)), 0, members))
		}
		marks := func(ids.Site) geoconfig.Balance { return geoconfig.DefaultBalance() }
		moves, _ := Plan(nodes, held, func(ids.Node) bool { return false }, marks)
		moved += len(moves)
		used := map[ids.Node]int64{}
		for _, n := range nodes {
			used[n.ID] = n.UsedBytes
		}
		for _, m := range moves {
			row := &held[slices.IndexFunc(held, func(h Held) bool { return h.Row.ID == m.Slice })].Row
			_, from := row.Member(m.From)
			if _, to := row.Member(m.To); !from || to || used[m.From] <= 750 || used[m.To]+m.Bytes > 800 {
				t.Fatalf("seed %d: %+v of %+v, where they use %v", seed, m, row, used)
			}
			for i := range row.Members {
				if row.Members[i].Node == m.From {
					row.Members[i].Node = m.To
				}
			}
			used[m.From], used[m.To] = used[m.From]-m.Bytes, used[m.To]+m.Bytes
		}
	}
	if moved < 100 {
		t.Errorf("only %d moves were drawn", moved)
	}
}
