package placement

import (
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
		{"a node of the right site is away", grouped(2, 1, "a", "a1", "b1"), func(c *Candidate) { c.Away = c.Node == "a2" }, Step{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.row, world(c.change), nil); got != c.want {
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
				for step := Next(row, candidates, nil); step != (Step{}); step = Next(row, candidates, nil) {
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
