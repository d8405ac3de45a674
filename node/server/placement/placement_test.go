package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
)

// nodes reads "a1:3" as node a1 at site a with load 3; "!" marks one away.
func nodes(text string) []Candidate {
	var out []Candidate
	for _, word := range strings.Fields(text) {
		c := Candidate{Away: strings.HasPrefix(word, "!")}
		word = strings.TrimPrefix(word, "!")
		name, load, _ := strings.Cut(word, ":")
		_, _ = fmt.Sscan(load, &c.Load) // no load is 0
		c.Node, c.Site = geoconfig.NodeID(name), geoconfig.SiteName(name[:1])
		out = append(out, c)
	}
	return out
}

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		name, nodes, home, prefer, want string
		level, sites                    int
	}{
		{"one node at each of three sites", "a1 b1 c1", "b", "b1", "b1 a1 c1", 3, 0},
		{"the preferred node acts though it is loaded", "a1:0 a2:9 b1 c1", "a", "a2", "a2 b1 c1", 3, 0},
		{"the least loaded at home without one preferred there", "a1:5 a2:1 b1 c1", "a", "b1", "a2 b1 c1", 3, 0},
		{"two sites of three replicas: the extra one at home", "a1 a2 b1 b2 c1", "b", "", "b1 a1 b2", 3, 2},
		{"one site", "a1 a2 a3 b1", "a", "", "a1 a2 a3", 3, 1},
		{"fewer nodes than replicas", "a1 b1", "a", "", "a1 b1", 3, 0},
		{"fewer sites than asked for", "a1 a2 a3", "a", "", "a1 a2 a3", 3, 3},
		{"home without nodes", "a1:4 b1:2", "z", "", "b1 a1", 2, 0},
		{"home whose node is away", "!a1 b1 c1", "a", "", "b1 c1", 3, 0},
		{"level two, one standby elsewhere", "a1 a2 b1 b2", "b", "", "b1 a1", 2, 2},
		{"level one", "a1 b1", "b", "", "b1", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := geoconfig.Policy{Home: geoconfig.SiteName(test.home), Level: test.level, Sites: test.sites}
			got, err := Choose(p, nodes(test.nodes), geoconfig.NodeID(test.prefer))
			var want []geoconfig.NodeID
			for _, w := range strings.Fields(test.want) {
				want = append(want, geoconfig.NodeID(w))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
	if _, err := Choose(geoconfig.Policy{Level: 1}, nodes("!a1"), ""); err == nil {
		t.Error("a slice was placed where no node answers")
	}
}

func TestOpenTakesTheNewestOpenSliceOfEqualPolicyHere(t *testing.T) {
	p := geoconfig.Policy{Home: "a", Level: 3, Kind: geoconfig.Ordinary}
	two := p
	two.Level = 2
	three := p
	three.Sites = 3
	rows := []geoconfig.SliceRow{
		{ID: 1, Active: "a1", Policy: p}, {ID: 2, Active: "a1", Policy: three}, {ID: 3, Active: "b1", Policy: p},
		{ID: 4, Active: "a1", Policy: two}, {ID: 5, Active: "a1", Policy: p, Closed: true},
	}
	if got, ok := Open(rows, p, "a1"); got != 2 || !ok {
		t.Errorf("got %d %v, want 2", got, ok)
	}
	if _, ok := Open(rows, p, "c1"); ok {
		t.Error("a slice was found at a node that acts for none")
	}
}
