package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// fellowsAfter makes slices of three members, one after the other, as nodes do, and
// returns with how many others each node shares slices then.
func fellowsAfter(t *testing.T, nodes []geoconfig.Node, slices int, width int) (fellows map[ids.Node]int, load map[ids.Node]int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var rows []geoconfig.SliceRow
	load = map[ids.Node]int{}
	for range slices {
		candidates := Candidates(nodes, rows, func(geoconfig.Node) bool { return false })
		for i := range candidates {
			candidates[i].shares.width = width
		}
		maker := nodes[r.IntN(len(nodes))]
		members, err := Choose(geoconfig.Policy{Home: maker.Site, Level: 3}, candidates, maker.ID, nil, nil)
		if err != nil || len(members) != 3 {
			t.Fatalf("got members %v, %v", members, err)
		}
		row := geoconfig.SliceRow{ID: ids.Slice(len(rows) + 1), Active: members[0]}
		for _, m := range members {
			row.Members = append(row.Members, geoconfig.Member{Node: m, State: geoconfig.Normal})
			load[m]++
		}
		rows = append(rows, row)
	}
	s := &sharing{rows: rows}
	s.once.Do(s.count)
	fellows = map[ids.Node]int{}
	for id, with := range s.with {
		fellows[id] = len(with)
	}
	return fellows, load
}

// inSites are nodes, by turns at so many sites.
func inSites(nodes, sites int) []geoconfig.Node {
	var out []geoconfig.Node
	for i := range nodes {
		out = append(out, geoconfig.Node{ID: ids.Node(fmt.Sprintf("n%04d", i)), Site: ids.Site(fmt.Sprintf("s%d", i%sites)), Incarnation: 1})
	}
	return out
}

func TestScatter_IsBounded(t *testing.T) {
	nodes := inSites(48, 6)
	free, _ := fellowsAfter(t, nodes, 500, len(nodes))
	bound, load := fellowsAfter(t, nodes, 500, ScatterWidth)
	most, sum, least, heaviest := 0, 0, len(nodes), 0
	for id, n := range bound {
		most, sum = max(most, n), sum+n
		least, heaviest = min(least, load[id]), max(heaviest, load[id])
	}
	without := 0
	for _, n := range free {
		without = max(without, n)
	}
	if without < 2*ScatterWidth {
		t.Fatalf("without a bound a node has %d fellows at most: this test would not see one", without)
	}
	if mean := float64(sum) / float64(len(nodes)); most > ScatterWidth+4 || mean > ScatterWidth+1 {
		t.Errorf("nodes have up to %d fellows, %.1f in the mean; want about %d", most, mean, ScatterWidth)
	}
	if len(bound) != len(nodes) || heaviest > 3*least {
		t.Errorf("%d of %d nodes have slices, from %d to %d each: the bound must not gather them on few", len(bound), len(nodes), least, heaviest)
	}
}

func TestScatter_YieldsToWhatMattersMore(t *testing.T) {
	// a and b have their fill of fellows; c knows neither.
	s := &sharing{width: 1, rows: []geoconfig.SliceRow{{Members: []geoconfig.Member{{Node: "a"}, {Node: "b"}}}}}
	node := func(id ids.Node, site ids.Site, domain, load int) Candidate {
		return Candidate{Node: id, Site: site, Domain: domain, Load: load, shares: s}
	}
	pick := func(a, b, c Candidate) ids.Node {
		t.Helper()
		next, _ := oneMore(geoconfig.Policy{Level: 2, Sites: 1, Home: a.Site}, []Candidate{a, b, c}, []ids.Node{"a"}, "a", nil)
		return next
	}
	if got := pick(node("a", "x", 1, 2), node("b", "x", 2, 9), node("c", "x", 3, 0)); got != "b" {
		t.Errorf("got %s, want the fellow b though it has more load", got)
	}
	if got := pick(node("a", "x", 1, 2), node("b", "x", 1, 9), node("c", "x", 3, 0)); got != "c" {
		t.Errorf("got %s, want c, which fails apart", got)
	}
	away := node("b", "x", 2, 0)
	away.Away = true
	if got := pick(node("a", "x", 1, 2), away, node("c", "x", 3, 0)); got != "c" {
		t.Errorf("got %s, want c, which answers", got)
	}
}
