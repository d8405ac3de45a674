package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// world is the nodes a1, a2, b1, b2, c1 and c2 at the sites a, b and c.
func world(change func(*Candidate)) []Candidate {
	var out []Candidate
	for i, id := range []ids.Node{"a1", "a2", "b1", "b2", "c1", "c2"} {
		c := Candidate{Node: id, Site: ids.Site(id[:1]), Domain: i / 2, Load: i}
		change(&c)
		out = append(out, c)
	}
	return out
}

// grouped is a row whose first member is the active. An ID may end in the state.
func grouped(level, sites int, home ids.Site, members ...string) *geoconfig.SliceRow {
	row := &geoconfig.SliceRow{ID: 1, Policy: geoconfig.Policy{Home: home, Level: level, Sites: sites}, Active: ids.Node(members[0][:2])}
	states := map[string]geoconfig.MemberState{"": geoconfig.Normal, "M": geoconfig.Migrating, "F": geoconfig.Failed}
	for _, m := range members {
		row.Members = append(row.Members, geoconfig.Member{Node: ids.Node(m[:2]), State: states[m[2:]]})
	}
	return row
}

func TestNext_BringsSlicesToTheirPolicy(t *testing.T) {
	drained := func(list ...ids.Node) func(*Candidate) {
		return func(c *Candidate) {
			for _, id := range list {
				c.Leaving = c.Leaving || c.Node == id
			}
		}
	}
	away := func(list ...ids.Node) func(*Candidate) {
		return func(c *Candidate) { c.Away = slices.Contains(list, c.Node) }
	}
	for _, c := range []struct {
		name   string
		row    *geoconfig.SliceRow
		change func(*Candidate)
		want   Step
	}{
		{"all is well", grouped(3, 0, "a", "a1", "b1", "c1"), drained(), Step{}},
		{"the active is drained", grouped(3, 0, "a", "a1", "b1", "c1"), drained("a1"), Step{HandOver: "b1"}},
		{"a drained active has a member at home beside it", grouped(3, 0, "a", "a1", "b1", "a2"), drained("a1"), Step{HandOver: "a2"}},
		{"a standby is drained", grouped(3, 0, "a", "b1", "a1", "c1"), drained("a1"), Step{Add: "a2"}},
		{"its replacement catches up", grouped(3, 0, "a", "b1", "a1", "c1", "a2M"), drained("a1"), Step{}},
		{"its replacement is normal", grouped(3, 0, "a", "b1", "a1", "c1", "a2"), drained("a1"), Step{Remove: "a1"}},
		{"another member failed meanwhile", grouped(3, 0, "a", "b1", "a1", "c1F", "a2"), drained("a1"), Step{}},
		{"the only member is drained", grouped(1, 0, "a", "a1"), drained("a1"), Step{Add: "a2"}},
		{"the only member has a successor", grouped(1, 0, "a", "a1", "a2"), drained("a1"), Step{HandOver: "a2"}},
		{"the only member has been left", grouped(1, 0, "a", "a2", "a1"), drained("a1"), Step{Remove: "a1"}},
		{"no node can take its place", grouped(3, 0, "a", "b1", "a1", "c1"), drained("a1", "a2", "b2", "c2"), Step{}},
		{"a whole site is drained", grouped(3, 0, "a", "b1", "a1", "c1"), drained("a1", "a2"), Step{Add: "b2"}},
		{"a copy is missing", grouped(3, 0, "a", "a1", "b1"), drained(), Step{Add: "c1"}},
		{"a copy is too many", grouped(2, 0, "a", "a1", "b1", "c1"), drained(), Step{Remove: "c1"}},
		{"the failed one is too many", grouped(2, 0, "a", "a1", "b1F", "c1"), drained(), Step{Remove: "b1"}},
		{"one too many while one catches up", grouped(2, 0, "a", "a1", "b1", "c1M"), drained(), Step{}},
		{"no member is at home", grouped(2, 0, "c", "a1", "b1"), drained(), Step{Add: "c1"}},
		{"a member came home", grouped(2, 0, "c", "a1", "b1", "c1"), drained(), Step{Remove: "b1"}},
		{"the only copy came home", grouped(1, 0, "c", "a1", "c1"), drained(), Step{HandOver: "c1"}},
		{"home is drained", grouped(2, 0, "c", "a1", "b1"), drained("c1", "c2"), Step{}},
		{"two copies are at one site of two", grouped(2, 2, "a", "a1", "a2"), drained(), Step{Add: "b1"}},
		{"the third evens out", grouped(2, 2, "a", "a1", "a2", "b1"), drained(), Step{Remove: "a2"}},
		{"more sites than the policy names", grouped(2, 1, "a", "a1", "b1"), drained(), Step{Add: "a2"}},
		{"the far one is too many", grouped(2, 1, "a", "a1", "b1", "a2"), drained(), Step{Remove: "b1"}},
		{"a node of the right site is away", grouped(2, 1, "a", "a1", "b1"), away("a2"), Step{}},
		{"a copy is missing and its site is lost", grouped(3, 0, "a", "a1", "b1"), away("c1", "c2"), Step{Add: "a2"}},
		{"so it is where the policy names the sites", grouped(3, 3, "a", "a1", "b1"), away("c1", "c2"), Step{Add: "a2"}},
		{"the lost site is back", grouped(3, 0, "a", "a1", "b1", "a2"), away(), Step{Add: "c1"}},
		{"the copies are spread again", grouped(3, 0, "a", "a1", "b1", "a2", "c1"), away(), Step{Remove: "a2"}},
		{"two sites are lost", grouped(3, 0, "a", "a1"), away("b1", "b2", "c1", "c2"), Step{Add: "a2"}},
		{"no other node answers", grouped(3, 0, "a", "a1", "b1"), away("a2", "b2", "c1", "c2"), Step{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.row, world(c.change), nil, nil); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNext_EndsWithThePolicySatisfied(t *testing.T) {
	for level := 1; level <= 4; level++ {
		for sites := 0; sites <= min(level, 3); sites++ {
			for _, home := range []ids.Site{"a", "b", "c"} {
				row := grouped(level, sites, home, "a1", "b1", "c1")
				candidates := world(func(c *Candidate) { c.Leaving = c.Node == "a1" })
				steps := 0
				for step := Next(row, candidates, nil, nil); step != (Step{}); step = Next(row, candidates, nil, nil) {
					if steps++; steps > 20 {
						t.Fatalf("level %d, sites %d, home %s: no end at %+v: %+v", level, sites, home, row.Members, step)
					}
					take(t, row, step)
				}
				if len(row.Members) != level {
					t.Errorf("level %d, sites %d, home %s: got %+v", level, sites, home, row.Members)
				}
				if _, in := row.Member("a1"); in {
					t.Errorf("level %d, sites %d, home %s: the drained node is still a member", level, sites, home)
				}
				at := map[ids.Site]int{}
				for _, m := range row.Members {
					at[ids.Site(m.Node[:1])]++
				}
				// Two sites have three nodes only, where one of them is drained at home.
				fits := level < 4 || sites != 2 || home != "a"
				if at[home] == 0 || fits && sites > 1 && len(at) != sites {
					t.Errorf("level %d, sites %d, home %s: the copies are at %v", level, sites, home, at)
				}
			}
		}
	}
}

// TestNext_AlwaysEnds draws worlds of up to five sites, in which nodes are away or
// drained, and slices of any policy. The steps come to an end, as many copies as
// answering nodes allow are there, and where nothing is away or drained they stand
// at as many sites as the policy wants.
func TestNext_AlwaysEnds(t *testing.T) {
	for seed := range uint64(3000) {
		draw := newDraw(seed)
		candidates, row := drawWorld(draw)
		free, sites := 0, map[ids.Site]bool{}
		for _, c := range candidates {
			_, in := row.Member(c.Node)
			if !c.Leaving && (in || !c.Away) {
				free++
				sites[c.Site] = true
			}
		}
		steps := 0
		for step := Next(row, candidates, nil, nil); step != (Step{}); step = Next(row, candidates, nil, nil) {
			if steps++; steps > 20 {
				t.Fatalf("seed %d: no end at %+v of %+v: %+v", seed, row, candidates, step)
			}
			take(t, row, step)
		}
		staying := newGroup(row, candidates)
		if got, want := len(staying.staying), min(row.Policy.Level, free); got < want {
			t.Errorf("seed %d: %d copies where %d nodes could hold one: %+v of %+v", seed, got, free, row, candidates)
		}
		if got, want := len(staying.perSite()), min(row.Policy.WantedSites(), len(sites)); got < want {
			t.Errorf("seed %d: copies at %d sites where %d could be used: %+v of %+v", seed, got, want, row, candidates)
		}
	}
}

func newDraw(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// drawWorld draws nodes, and a slice whose active is not away.
func drawWorld(draw *rand.Rand) ([]Candidate, *geoconfig.SliceRow) {
	var candidates []Candidate
	for site := range 1 + draw.IntN(5) {
		for i := range 1 + draw.IntN(3) {
			name := string(rune('a'+site)) + string(rune('1'+i))
			candidates = append(candidates, Candidate{
				Node: ids.Node(name), Site: ids.Site(name[:1]), Domain: site, Load: draw.IntN(9),
				Away: draw.IntN(4) == 0, Leaving: draw.IntN(8) == 0,
			})
		}
	}
	draw.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	candidates[0].Away = false // it is the active
	var members []string
	for _, c := range candidates[:1+draw.IntN(min(4, len(candidates)))] {
		members = append(members, string(c.Node))
	}
	level := 1 + draw.IntN(4)
	return candidates, grouped(level, draw.IntN(level+1), candidates[draw.IntN(len(candidates))].Site, members...)
}

// take does a step at once, and checks that no step takes the active or a copy
// that is needed.
func take(t *testing.T, row *geoconfig.SliceRow, step Step) {
	t.Helper()
	switch {
	case step.Add != "":
		row.Members = append(row.Members, geoconfig.Member{Node: step.Add, State: geoconfig.Normal})
	case step.HandOver != "":
		row.Active = step.HandOver
	case step.Remove == row.Active || len(row.Members) <= row.Policy.Level:
		t.Fatalf("%s must not leave %+v", step.Remove, row)
	default:
		for i, m := range row.Members {
			if m.Node == step.Remove {
				row.Members = append(row.Members[:i], row.Members[i+1:]...)
				break
			}
		}
	}
}
