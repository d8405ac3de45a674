package balance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/placement"
)

// world reads "a1:90 a2:10 b1:50": nodes with what they use of 1,000 bytes, in percent.
// An ID names the node's site and, where it ends in !, one that does not answer; in *,
// one that receives a copy already; in -, one that is drained.
func world(text string) *World {
	w := &World{Marks: func(ids.Site) geoconfig.Balance { return geoconfig.DefaultBalance() }, Busy: map[ids.Node]bool{}, Aside: map[ids.Slice]bool{}}
	for _, word := range strings.Fields(text) {
		id, percent, _ := strings.Cut(word, ":")
		n := geoconfig.Node{CapacityBytes: 1000, ID: ids.Node(id[:2]), Site: ids.Site(id[:1])}
		_, _ = fmt.Sscan(percent, &n.UsedBytes) // no number is 0
		n.UsedBytes *= 10
		n.Fill = geoconfig.DefaultBalance().FillOf(n.UsedBytes, n.CapacityBytes)
		w.Nodes = append(w.Nodes, n)
		w.Candidates = append(w.Candidates, placement.Candidate{Node: n.ID, Site: n.Site, Domain: int(id[0]), Filling: n.Fill != geoconfig.Roomy,
			Away: strings.HasSuffix(id, "!"), Leaving: strings.HasSuffix(id, "-")})
		w.Busy[n.ID] = strings.HasSuffix(id, "*")
	}
	return w
}

// slice is one with the members that are named, the active first, at whose site it is
// at home. Its policy asks for what it has.
func slice(id ids.Slice, bytes int64, idle time.Duration, members string) Held {
	row, sites := geoconfig.SliceRow{ID: id}, map[string]bool{}
	for _, m := range strings.Fields(members) {
		row.Members = append(row.Members, geoconfig.Member{Node: ids.Node(m[:2]), State: geoconfig.Normal})
		sites[m[:1]] = true
	}
	row.Active = row.Members[0].Node
	row.Policy = geoconfig.Policy{Home: ids.Site(members[:1]), Level: len(row.Members), Sites: len(sites)}
	return Held{Row: row, Bytes: bytes, Idle: idle}
}

func own(percent int64) Own {
	return Own{Node: "a1", Site: "a", Used: percent * 10, Capacity: 1000}
}

// TestDecide_GivesTheColdestWhereThereIsRoom has a1 decide, of 1,000 bytes: it goes
// from above 850 down to 750.
func TestDecide_GivesTheColdestWhereThereIsRoom(t *testing.T) {
	const day = 24 * time.Hour
	two := []Held{slice(1, 100, 0, "a1 b1"), slice(2, 50, 0, "a1 b1")}
	for _, c := range []struct {
		name, nodes string
		own         Own
		held        []Held
		want        geoconfig.Giving
		why         Reason
	}{
		{"below the high mark", "a1:85 a2:10 b1", own(85), two, geoconfig.Giving{}, Resting},
		{"above it", "a1:86 a2:10 b1", own(86), two, geoconfig.Giving{Slice: 1, To: "a2"}, Resting},
		{"on its way to the low mark", "a1:80 a2:10 b1", Own{"a1", "a", 800, 1000, false, true}, two, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"at the low mark", "a1:75 a2:10 b1", Own{"a1", "a", 750, 1000, false, true}, two, geoconfig.Giving{}, Resting},
		{"without room, between the marks", "a1:80 a2:10 b1", Own{"a1", "a", 800, 1000, true, false}, two, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"its size is not known", "a1:99 a2:10 b1", Own{Node: "a1", Site: "a", Used: 990}, two, geoconfig.Giving{}, Resting},
		{"the coldest first", "a1:90 a2 b1", own(90), []Held{slice(1, 100, time.Hour, "a1 b1"), slice(2, 60, day, "a1 b1")}, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"the larger of equally cold ones", "a1:90 a2 b1", own(90), []Held{slice(1, 60, day, "a1 b1"), slice(2, 100, day+time.Hour, "a1 b1")}, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"not more than must go", "a1:90 a2 b1", own(90), []Held{slice(1, 300, day, "a1 b1"), slice(2, 140, day, "a1 b1")}, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"the smallest where all are more", "a1:90 a2 b1", own(90), []Held{slice(1, 400, day, "a1 b1"), slice(2, 300, day, "a1 b1")}, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"a slice of nothing stays", "a1:90 a2 b1", own(90), []Held{slice(1, 0, day, "a1 b1")}, geoconfig.Giving{}, NoSlices},
		{"no slice is here", "a1:90 a2 b1", own(90), nil, geoconfig.Giving{}, NoSlices},
		{"the emptiest of its site", "a1:90 a2:40 a3:30 b1", own(90), two, geoconfig.Giving{Slice: 1, To: "a3"}, Resting},
		{"its own site before an emptier one", "a1:90 a2:40 b1 c1:1", own(90), []Held{slice(1, 100, 0, "b1 a1")}, geoconfig.Giving{Slice: 1, To: "a2"}, Resting},
		{"no other node", "a1:90 b1", own(90), two, geoconfig.Giving{}, NoTaker},
		{"the other one is between the marks", "a1:90 a2:76 b1", own(90), two, geoconfig.Giving{}, NoTaker},
		{"the other one would be above the middle", "a1:90 a2:71 b1", own(90), []Held{slice(1, 100, 0, "a1 b1")}, geoconfig.Giving{}, NoTaker},
		{"but has room for a smaller slice", "a1:90 a2:71 b1", own(90), two, geoconfig.Giving{Slice: 2, To: "a2"}, Resting},
		{"the other one does not answer", "a1:90 a2!:10 b1", own(90), two, geoconfig.Giving{}, NoTaker},
		{"the other one is drained", "a1:90 a2-:10 b1", own(90), two, geoconfig.Giving{}, NoTaker},
		{"the other one receives a copy", "a1:90 a2*:10 b1", own(90), two, geoconfig.Giving{}, Waiting},
		{"one of two others does", "a1:90 a2*:10 a3:60 b1", own(90), two, geoconfig.Giving{Slice: 1, To: "a3"}, Resting},
		{"only another site has room, and home would lose its copy", "a1:90 b1 c1", own(90), two, geoconfig.Giving{}, NoTaker},
		{"another site would be one more than the policy names", "a1:90 a2:80 b1 c1", own(90), []Held{slice(1, 100, 0, "a2 a1 b1"), slice(2, 100, 0, "a2 a1")}, geoconfig.Giving{}, NoTaker},
		{"from one site to another one", "a1:90 b1:80 c1", Own{"b1", "b", 900, 1000, false, false}, []Held{slice(1, 100, 0, "a1 b1")}, geoconfig.Giving{Slice: 1, To: "c1"}, Resting},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.own, c.held, world(c.nodes))
			if got.Give != c.want || got.Why != c.why {
				t.Errorf("got %+v because of %q, want %+v because of %q", got.Give, got.Why, c.want, c.why)
			}
			if want := c.want.Slice != 0 || c.why == NoTaker || c.why == NoSlices || c.why == Waiting; got.Giving != want {
				t.Errorf("goes on: %v, want %v", got.Giving, want)
			}
		})
	}
}

func TestDecide_LeavesSlicesThatChange(t *testing.T) {
	w := world("a1:90 a2:10 a3:10 b1")
	lacking, junior := slice(1, 100, 0, "a1 b1"), slice(1, 100, 0, "a1 b1")
	lacking.Row.Policy.Level = 3
	junior.Row.Members[1].State = geoconfig.Migrating
	for name, h := range map[string]Held{"it lacks a copy": lacking, "a member catches up": junior} {
		if got := Decide(own(90), []Held{h}, w); got.Give.Slice != 0 || got.Why != Waiting {
			t.Errorf("%s: got %+v, want it to wait", name, got)
		}
	}
	w.Aside[1] = true
	if got := Decide(own(90), []Held{slice(1, 100, 0, "a1 b1"), slice(2, 90, 0, "a1 b1")}, w); got.Give.Slice != 2 {
		t.Errorf("got %+v, want the slice that is not put aside", got)
	}
}

func TestDecide_FollowsTheMarks(t *testing.T) {
	w, held := world("a1:90 a2:10 b1"), []Held{slice(1, 100, 0, "a1 b1")}
	w.Marks = func(ids.Site) geoconfig.Balance { return geoconfig.Balance{Off: true, High: 85, Low: 75} }
	if got := Decide(own(90), held, w); got.Give.Slice != 0 || got.Why != Off || got.Giving {
		t.Errorf("got %+v where it is switched off", got)
	}
	w.Marks = func(ids.Site) geoconfig.Balance { return geoconfig.Balance{High: 95, Low: 75} }
	if got := Decide(own(90), held, w); got.Give.Slice != 0 || got.Why != Resting {
		t.Errorf("got %+v below a high mark of 95", got)
	}
	w.Marks = func(ids.Site) geoconfig.Balance { return geoconfig.DefaultBalance() }
	w.Reserve = 900
	if got := Decide(own(90), held, w); got.Give.Slice != 0 || got.Why != NoTaker {
		t.Errorf("got %+v where the reserve leaves no room", got)
	}
}

func TestRemedy_NamesACommandOrASite(t *testing.T) {
	for why, want := range map[Reason]string{Off: "cartwheel balance set oslo --on", NoSlices: "cartwheel status", NoTaker: "a node at oslo", Waiting: "", Resting: ""} {
		got := Remedy(why, "oslo", geoconfig.DefaultBalance())
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want it to name %q", why, got, want)
		}
	}
}
