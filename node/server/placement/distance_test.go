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

// trips reads round trips from a1, in milliseconds: "b1:20".
func trips(t *testing.T, text string) map[ids.Node]time.Duration {
	t.Helper()
	out := map[ids.Node]time.Duration{}
	for _, word := range strings.Fields(text) {
		n, ms, _ := strings.Cut(word, ":")
		v, err := strconv.Atoi(ms)
		if err != nil {
			t.Fatal(err)
		}
		out[ids.Node(n)] = time.Duration(v) * time.Millisecond
	}
	return out
}

// prober answers from what is true, and notes what it was asked. A node of which
// nothing is true cannot be measured.
type prober struct {
	t     *testing.T
	truth map[ids.Node]time.Duration
	asked []string
}

func (p *prober) probe(from ids.Node, to []ids.Node) map[ids.Node]time.Duration {
	if from != "a1" {
		p.t.Errorf("measured from %s, want from the active", from)
	}
	out := map[ids.Node]time.Duration{}
	for _, n := range to {
		p.asked = append(p.asked, string(n))
		if rtt, ok := p.truth[n]; ok {
			out[n] = rtt
		}
	}
	return out
}

// TestChoose_MeasuresTheTwoNearest gives round trips as predicted, and as they
// are: 0 does not answer.
func TestChoose_MeasuresTheTwoNearest(t *testing.T) {
	for _, test := range []struct {
		name, nodes, predicted, truth, want, asked string
		level, sites                               int
	}{
		{"the nearer by measurement", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "b1:90 c1:30 d1:10", "a1 c1", "b1 c1", 2, 0},
		{"as predicted", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "b1:21 c1:33", "a1 b1", "b1 c1", 2, 0},
		{"both are farther than a third is said to be", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "b1:90 c1:60", "a1 c1", "b1 c1", 2, 0},
		{"each member in its turn", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "b1:90 c1:30 d1:10", "a1 c1 d1", "b1 c1 b1 d1", 3, 0},
		{"the nearest is dead", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "b1:0 c1:300", "a1 c1", "b1 c1", 2, 0},
		{"both are dead: the third", "a1 b1 c1 d1 e1", "b1:20 c1:30 d1:60 e1:50", "b1:0 c1:0", "a1 e1", "b1 c1", 2, 0},
		{"only the second could be measured", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "c1:200", "a1 c1", "b1 c1", 2, 0},
		{"none could be measured", "a1 b1 c1 d1", "b1:20 c1:30 d1:50", "", "a1 b1", "b1 c1", 2, 0},
		{"the dead one is the only other", "a1 b1", "b1:20", "b1:0", "a1 b1", "", 2, 0},
		{"both are dead and there is no third", "a1 b1 c1", "b1:20 c1:30", "b1:0 c1:0", "a1 b1", "b1 c1", 2, 0},
		{"the load decides between equals", "a1 b1:9 c1:1 d1", "b1:20 c1:40 d1:90", "b1:50 c1:51", "a1 c1", "b1 c1", 2, 0},
		{"a policy of one site keeps to it, though another is nearer", "a1 a2 b1", "a2:20 b1:10", "a2:50 b1:1", "a1 a2", "a2 b1", 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			predicted := trips(t, test.predicted)
			apart := func(_, b ids.Node) (time.Duration, bool) { rtt, ok := predicted[b]; return rtt, ok }
			p := &prober{t: t, truth: trips(t, test.truth)}
			got, err := Choose(geoconfig.Policy{Home: "a", Level: test.level, Sites: test.sites}, nodes(test.nodes), "a1", apart, p.probe)
			if words := strings.Trim(fmt.Sprint(got), "[]"); err != nil || words != test.want {
				t.Errorf("got %s, %v; want %s", words, err, test.want)
			}
			if asked := strings.Join(p.asked, " "); asked != test.asked {
				t.Errorf("measured %q, want %q", asked, test.asked)
			}
		})
	}
}

// TestNext_MeasuresWhatItAdds covers a missing copy, and one that stands at the
// wrong site.
func TestNext_MeasuresWhatItAdds(t *testing.T) {
	predicted := trips(t, "b1:20 b2:20 c1:30 c2:31")
	apart := func(_, b ids.Node) (time.Duration, bool) { rtt, ok := predicted[b]; return rtt, ok }
	for _, test := range []struct {
		name, truth string
		row         *geoconfig.SliceRow
		want        Step
	}{
		{"a copy is missing", "b1:90 b2:90 c1:90 c2:30", grouped(2, 0, "a", "a1"), Step{Add: "b1"}},
		{"a copy is missing and the nearest node is dead", "b1:0 b2:90", grouped(2, 0, "a", "a1"), Step{Add: "b2"}},
		{"two copies are at one site of two", "b1:0 b2:50", grouped(2, 2, "a", "a1", "a2"), Step{Add: "b2"}},
		{"all is well", "", grouped(2, 0, "a", "a1", "b1"), Step{}},
	} {
		p := &prober{t: t, truth: trips(t, test.truth)}
		got := Next(test.row, world(func(*Candidate) {}), apart, p.probe)
		if got != test.want {
			t.Errorf("%s: got %+v after measuring %v, want %+v", test.name, got, p.asked, test.want)
		}
		if n := len(p.asked); n != 0 && n != 2 || n == 0 != (test.want == Step{}) {
			t.Errorf("%s: measured %v, want two nodes where one is added", test.name, p.asked)
		}
	}
}

// TestNext_MeasuredAlwaysEnds is TestNext_AlwaysEnds where any node may be dead.
func TestNext_MeasuredAlwaysEnds(t *testing.T) {
	for seed := range uint64(1000) {
		draw := newDraw(seed)
		candidates, row := drawWorld(draw)
		probe := func(_ ids.Node, to []ids.Node) map[ids.Node]time.Duration {
			out := map[ids.Node]time.Duration{}
			for _, n := range to {
				out[n] = time.Duration(draw.IntN(3)) * time.Duration(draw.IntN(100)) * time.Millisecond
			}
			return out
		}
		steps := 0
		for step := Next(row, candidates, nil, probe); step != (Step{}); step = Next(row, candidates, nil, probe) {
			if steps++; steps > 20 {
				t.Fatalf("seed %d: no end at %+v of %+v: %+v", seed, row, candidates, step)
			}
			if i := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Node == step.Add }); step.Add != "" && (i < 0 || candidates[i].Away) {
				t.Fatalf("seed %d: added %s, which is away", seed, step.Add)
			}
			take(t, row, step)
		}
	}
}
