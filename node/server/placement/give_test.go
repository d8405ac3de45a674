package placement

import (
	"slices"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// giving is a world in which nodes give slice 1 away.
func giving(from, to ids.Node, more ...func(*Candidate)) []Candidate {
	return world(func(c *Candidate) {
		if c.Node == from {
			c.Gives, c.Filling, c.High = geoconfig.Giving{Slice: 1, To: to}, true, true
		}
		for _, change := range more {
			change(c)
		}
	})
}

func TestNext_MovesASliceThatIsGivenAway(t *testing.T) {
	away := func(id ids.Node) func(*Candidate) { return func(c *Candidate) { c.Away = c.Away || c.Node == id } }
	drained := func(id ids.Node) func(*Candidate) {
		return func(c *Candidate) { c.Leaving = c.Leaving || c.Node == id }
	}
	filling := func(id ids.Node) func(*Candidate) {
		return func(c *Candidate) { c.Filling = c.Filling || c.Node == id }
	}
	for _, c := range []struct {
		name       string
		row        *geoconfig.SliceRow
		candidates []Candidate
		want       Step
	}{
		{"a copy first", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2"), Step{Add: "a2"}},
		{"the copy is not whole", grouped(3, 0, "a", "a1", "b1", "c1", "a2M"), giving("a1", "a2"), Step{}},
		{"the active passes on", grouped(3, 0, "a", "a1", "b1", "c1", "a2"), giving("a1", "a2"), Step{HandOver: "a2"}},
		{"and leaves", grouped(3, 0, "a", "a2", "b1", "c1", "a1"), giving("a1", "a2"), Step{Remove: "a1"}},
		{"a standby leaves", grouped(3, 0, "a", "b1", "a1", "c1", "a2"), giving("a1", "a2"), Step{Remove: "a1"}},
		{"it has left", grouped(3, 0, "a", "a2", "b1", "c1"), giving("a1", "a2"), Step{}},
		{"no node of that name", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a9"), Step{}},
		{"the other one is away", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", away("a2")), Step{}},
		{"the other one is drained", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", drained("a2")), Step{}},
		{"the other one fails together with a member", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", func(c *Candidate) {
			if c.Node == "a2" {
				c.Domain = 1 // that of b1
			}
		}), Step{}},
		{"the other one filled up", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", filling("a2")), Step{}},
		{"to where the policy is met no more", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "b2"), Step{}},
		{"home would have no copy", grouped(2, 0, "a", "a1", "b1"), giving("a1", "c1"), Step{}},
		{"to another site, home keeps its copy", grouped(2, 0, "a", "a1", "b1"), giving("b1", "c1"), Step{Add: "c1"}},
		{"a member failed: repair comes first", grouped(3, 0, "a", "a1", "b1", "c1F"), giving("a1", "a2"), Step{}},
		{"a copy is missing: it comes first", grouped(3, 0, "a", "a1", "b1"), giving("a1", "a2"), Step{Add: "c1"}},
		{"another member is drained: that comes first", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", drained("b1")), Step{Add: "b2"}},
		{"the node is drained too: all of it leaves", grouped(3, 0, "a", "a1", "b1", "c1"), giving("a1", "a2", drained("a1")), Step{HandOver: "b1"}},
		{"another slice is given", grouped(3, 0, "a", "a1", "b1", "c1"), world(func(c *Candidate) { c.Gives = geoconfig.Giving{Slice: 2, To: "a2"} }), Step{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.row, c.candidates, nil, nil); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestNext_GivingEndsAndKeepsThePolicy draws worlds in which a member gives its copy to
// any node. The steps end, never fewer copies are whole, and the policy is met as before.
func TestNext_GivingEndsAndKeepsThePolicy(t *testing.T) {
	moved := 0
	for seed := range uint64(3000) {
		draw := newDraw(seed)
		candidates, row := drawWorld(draw)
		for i := range candidates {
			candidates[i].Away, candidates[i].Leaving = false, false
		}
		settle := func() (steps int) {
			for step := Next(row, candidates, nil, nil); step != (Step{}); step = Next(row, candidates, nil, nil) {
				if steps++; steps > 20 {
					t.Fatalf("seed %d: no end at %+v of %+v: %+v", seed, row, candidates, step)
				}
				take(t, row, step)
			}
			return steps
		}
		settle()
		before := newGroup(row, candidates).perSite()
		giver := slices.IndexFunc(candidates, func(c Candidate) bool { _, in := row.Member(c.Node); return in })
		candidates[giver].Gives = geoconfig.Giving{Slice: row.ID, To: candidates[draw.IntN(len(candidates))].Node}
		moved += settle()
		after := newGroup(row, candidates).perSite()
		if before[row.Policy.Home] > 0 && after[row.Policy.Home] == 0 || len(after) != len(before) {
			t.Fatalf("seed %d: copies by site were %v and are %v, of %+v", seed, before, after, row)
		}
		candidates[giver].Gives = geoconfig.Giving{}
		if n := settle(); n > 0 {
			t.Fatalf("seed %d: %d more steps once it was given: %+v", seed, n, row)
		}
	}
	if moved < 100 {
		t.Errorf("the worlds had %d steps: too few to show anything", moved)
	}
}

func TestChoose_PrefersDisksBelowTheHighMark(t *testing.T) {
	for _, c := range []struct {
		name, nodes, prefer, want string
		high, full                string
		level                     int
	}{
		{"the preferred one is above it", "a1 a2 b1", "a1", "[a2 b1]", "a1", "", 2},
		{"all of its site are above it", "a1 a2 b1", "a2", "[a2 b1]", "a1 a2", "", 2},
		{"between the marks is well", "a1 a2 b1", "a1", "[a1 b1]", "", "", 2},
		{"home comes first all the same", "a1 b1", "a1", "[a1 b1]", "a1", "", 2},
		{"but not a disk without room", "a1 b1 c1", "a1", "[b1 c1]", "", "a1", 2},
		{"a backup goes elsewhere", "a1 b1 c1:9", "a1", "[a1 c1]", "b1", "", 2},
		{"a site without room has none", "a1 a2 b1 c1", "a1", "[a1 b1 a2]", "", "c1", 3},
	} {
		candidates := nodes(c.nodes)
		for i := range candidates {
			x := &candidates[i]
			x.High, x.Full = strings.Contains(c.high, string(x.Node)), strings.Contains(c.full, string(x.Node))
		}
		got, err := Choose(geoconfig.Policy{Home: "a", Level: c.level}, candidates, ids.Node(c.prefer), nil, nil)
		if err != nil || nodesText(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, nodesText(got), err, c.want)
		}
	}
}

func nodesText(list []ids.Node) string {
	out := "["
	for i, n := range list {
		if i > 0 {
			out += " "
		}
		out += string(n)
	}
	return out + "]"
}
