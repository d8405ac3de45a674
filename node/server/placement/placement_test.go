package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// nodes reads "a1:3" as node a1 at site a with load 3; "!" marks one away.
func nodes(text string) []Candidate {
	var out []Candidate
	for _, word := range strings.Fields(text) {
		c := Candidate{Away: strings.HasPrefix(word, "!")}
		word = strings.TrimPrefix(word, "!")
		name, load, _ := strings.Cut(word, ":")
		_, _ = fmt.Sscan(load, &c.Load) // no load is 0
		c.Node, c.Site = ids.Node(name), ids.Site(name[:1])
		c.Domain = int(name[0])
		out = append(out, c)
	}
	return out
}

func TestChoose_FollowsPolicyAndLoad(t *testing.T) {
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
			p := geoconfig.Policy{Home: ids.Site(test.home), Level: test.level, Sites: test.sites}
			got, err := Choose(p, nodes(test.nodes), ids.Node(test.prefer), nil, nil)
			var want []ids.Node
			for _, w := range strings.Fields(test.want) {
				want = append(want, ids.Node(w))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
	if _, err := Choose(geoconfig.Policy{Level: 1}, nodes("!a1"), "", nil, nil); err == nil {
		t.Error("a slice was placed where no node answers")
	}
}

// TestChoose_BackupsAreNearAndApart gives domains as "a1=b1", which fail
// together though their sites are two, and "a1/a2", which do not though their
// site is one. Round trips from the active are in milliseconds, as "b1:20".
func TestChoose_BackupsAreNearAndApart(t *testing.T) {
	for _, test := range []struct {
		name, nodes, together, rtts, want string
		level, sites                      int
	}{
		{"the nearest sites", "a1 b1 c1 d1", "", "b1:80 c1:20 d1:25", "a1 c1 d1", 3, 0},
		{"the load decides between sites as good as equally far", "a1 b1:9 c1:1", "", "b1:90 c1:105", "a1 c1", 2, 0},
		{"not between far and near", "a1 b1:9 c1:1", "", "b1:20 c1:110", "a1 b1", 2, 0},
		{"what is not known comes after what is", "a1 b1 c1", "", "c1:200", "a1 c1", 2, 0},
		{"never two in one failure domain, though that is the nearest", "a1 b1 c1 d1", "a1=b1", "b1:0 c1:20 d1:90", "a1 c1 d1", 3, 0},
		{"nor two that are not the active's", "a1 b1 c1 d1", "b1=c1", "b1:20 c1:20 d1:90", "a1 b1 d1", 3, 0},
		{"a node that says the wrong site", "a1 a2 b1 b2", "b1=a1 b1=a2 b1/b2", "a2:1 b1:1 b2:50", "a1 b2", 2, 2},
		{"unless it cannot be avoided", "a1 b1 c1", "a1=b1 b1=c1 a1=c1", "b1:0 c1:0", "a1 b1 c1", 3, 0},
		{"a site of the policy's number, but another domain", "a1 a2 b1 b2 c1", "", "a2:1 b1:30 b2:30 c1:60", "a1 b1 a2", 3, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			candidates := nodes(test.nodes)
			var rows []geoconfig.Node
			for _, c := range candidates {
				rows = append(rows, geoconfig.Node{ID: c.Node, Site: c.Site})
			}
			for _, pair := range strings.Fields(test.together) {
				a, b, near := strings.Cut(pair, "=")
				if !near {
					a, b, _ = strings.Cut(pair, "/")
				}
				for i := range rows {
					switch {
					case string(rows[i].ID) != a:
					case near:
						rows[i].Together = append(rows[i].Together, ids.Node(b))
					default:
						rows[i].Apart = append(rows[i].Apart, ids.Node(b))
					}
				}
			}
			domains := Domains(rows)
			for i := range candidates {
				candidates[i].Domain = domains[candidates[i].Node]
			}
			rtts := map[ids.Node]time.Duration{}
			for _, word := range strings.Fields(test.rtts) {
				n, ms, _ := strings.Cut(word, ":")
				v, err := strconv.Atoi(ms)
				if err != nil {
					t.Fatal(err)
				}
				rtts[ids.Node(n)] = time.Duration(v)*time.Millisecond + time.Microsecond
			}
			apart := func(a, b ids.Node) (time.Duration, bool) {
				rtt, ok := rtts[b]
				return rtt, ok && a == "a1"
			}
			p := geoconfig.Policy{Home: "a", Level: test.level, Sites: test.sites}
			for range 3 { // in whatever order they are named
				got, err := Choose(p, candidates, "a1", apart, nil)
				if words := strings.Trim(fmt.Sprint(got), "[]"); err != nil || words != test.want {
					t.Errorf("got %s, %v; want %s", words, err, test.want)
				}
				slices.Reverse(candidates)
			}
		})
	}
}

func TestDomains_AreWhatWasMeasured(t *testing.T) {
	got := Domains([]geoconfig.Node{
		{ID: "a1", Site: "a"}, {ID: "a2", Site: "a", Apart: []ids.Node{"a3", "a1"}}, {ID: "a3", Site: "a"},
		{ID: "b1", Site: "b", Together: []ids.Node{"a2"}}, {ID: "c1", Site: "c"}, {ID: "c2", Site: "c"},
	})
	same := func(x, y ids.Node, want bool) {
		if (got[x] == got[y]) != want {
			t.Errorf("%s and %s in one domain: %v, want %v (%v)", x, y, !want, want, got)
		}
	}
	same("a1", "a3", true)
	same("a2", "b1", true)
	same("a1", "a2", false)
	same("a1", "b1", false)
	same("c1", "c2", true)
	same("c1", "a1", false)
}

func TestOpen_TakesTheNewestOpenSliceOfThePolicy(t *testing.T) {
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
