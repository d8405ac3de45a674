package budget

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestDivide_GivesWhatIsWanted(t *testing.T) {
	shares := geoconfig.DefaultShares()
	for what, c := range map[string]struct {
		wanted map[ids.Node]byClass
		least  map[ids.Node]float64
		most   map[ids.Node]float64
	}{
		"nothing: equal parts": {
			map[ids.Node]byClass{"a": {}, "b": {}}, map[ids.Node]float64{"a": 500, "b": 500}, map[ids.Node]float64{"a": 500, "b": 500}},
		"one wants all: nearly all": {
			map[ids.Node]byClass{"a": {Repair: 9000}, "b": {}}, map[ids.Node]float64{"a": 960}, map[ids.Node]float64{"b": 40}},
		"one wants little: the other gets the rest": {
			map[ids.Node]byClass{"a": {Foreground: 100}, "b": {Foreground: 5000}}, map[ids.Node]float64{"a": 100, "b": 860}, nil},
		"both want all: halves": {
			map[ids.Node]byClass{"a": {Foreground: 9000}, "b": {Foreground: 5000}}, map[ids.Node]float64{"a": 499, "b": 499}, nil},
		"a higher class goes first": {
			map[ids.Node]byClass{"a": {Foreground: 9000}, "b": {Rebalancing: 9000}}, map[ids.Node]float64{"a": 940, "b": 18 + 31}, map[ids.Node]float64{"b": 60}},
		"each lower class has its share": {
			map[ids.Node]byClass{"a": {Foreground: 9000}, "b": {Replication: 9000}}, map[ids.Node]float64{"a": 860, "b": 93 + 31}, nil},
	} {
		got := divide(1000, shares, c.wanted)
		for n, least := range c.least {
			if got[n] < least-1e-6 {
				t.Errorf("%s: %s got %.1f, want at least %.1f", what, n, got[n], least)
			}
		}
		for n, most := range c.most {
			if got[n] > most+1e-6 {
				t.Errorf("%s: %s got %.1f, want at most %.1f", what, n, got[n], most)
			}
		}
	}
}

// TestDivide_AddsUpAndStarvesNone divides any rate among any nodes.
func TestDivide_AddsUpAndStarvesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Float64Range(1e5, 1e10).Draw(t, "rate")
		nodes := rapid.IntRange(1, 9).Draw(t, "nodes")
		wanted := map[ids.Node]byClass{}
		for i := range nodes {
			var w byClass
			for c := range w {
				w[c] = rapid.Int64Range(0, 1<<34).Draw(t, "wanted")
			}
			wanted[ids.Node(fmt.Sprint("n", i))] = w
		}
		sum := 0.0
		for n, got := range divide(total, geoconfig.DefaultShares(), wanted) {
			if got < total*keptPart/float64(nodes)-1e-3 {
				t.Fatalf("%s got %f of %f", n, got, total)
			}
			sum += got
		}
		if sum > total*(1+1e-9) || sum < total*(1-1e-9) {
			t.Fatalf("the parts are %f together, of %f", sum, total)
		}
	})
}

// members are some nodes that share a rate and exchange reports at once.
type members map[ids.Node]*member

type member struct {
	group
	wants byClass
	taken float64
}

func gather(now time.Duration, names ...ids.Node) members {
	out := members{}
	for _, n := range names {
		m := &member{group: group{self: n}}
		m.update(names, now)
		out[n] = m
	}
	return out
}

// turn has each of the nodes divide, one after the other, and tell those that hear it.
func (m members) turn(total float64, now time.Duration, deaf func(from, to ids.Node) bool) (sum float64) {
	for from, n := range m {
		n.taken = n.share(total, geoconfig.DefaultShares(), n.wants, now)
		for to, other := range m {
			if to != from && !deaf(from, to) {
				other.others[from] = heard{at: now, wanted: n.wants, taken: n.taken}
			}
		}
	}
	for _, n := range m {
		sum += n.taken
	}
	return sum
}

func allHear(ids.Node, ids.Node) bool { return false }

func TestShare_GoesWhereItIsWanted(t *testing.T) {
	now := time.Hour
	m := gather(now, "a", "b", "c", "d")
	m["b"].wants = byClass{Foreground: 100_000}
	for turn := range 6 {
		if sum := m.turn(1000, now, allHear); sum > 1000.001 {
			t.Errorf("turn %d: the nodes take %.1f of 1000", turn, sum)
		}
		now += time.Second
	}
	if got := m["b"].taken; got < 900 {
		t.Errorf("the node that wants all takes %.1f of 1000", got)
	}
}

func TestShare_IsEqualWhereNodesDoNotHearEachOther(t *testing.T) {
	now := time.Hour
	m := gather(now, "a", "b", "c", "d")
	m["a"].wants, m["b"].wants = byClass{Foreground: 100_000}, byClass{Foreground: 100_000}
	none := func(ids.Node, ids.Node) bool { return true }
	for range 3 {
		m.turn(1000, now, none)
		for n, one := range m {
			if one.taken < 249 || one.taken > 251 {
				t.Errorf("%s takes %.1f, want a quarter of 1000", n, one.taken)
			}
		}
		now += time.Second
	}
}

// TestShare_LeavesASilentNodeItsPartUntilItIsGone splits one node off.
func TestShare_LeavesASilentNodeItsPartUntilItIsGone(t *testing.T) {
	now := time.Hour
	m := gather(now, "a", "b", "c", "d")
	for _, n := range m {
		n.wants = byClass{Foreground: 100_000}
	}
	for range 5 {
		m.turn(1000, now, allHear)
		now += time.Second
	}
	split := func(from, to ids.Node) bool { return from == "d" || to == "d" }
	for turn := range 10 {
		sum := m.turn(1000, now, split)
		if sum > 1000.001 {
			t.Errorf("turn %d: the nodes take %.1f of 1000 together", turn, sum)
		}
		now += time.Second
	}
	delete(m, "d") // it was dead all the time
	for range int(presentFor / time.Second) {
		m.turn(1000, now, split)
		now += time.Second
	}
	if sum := m.turn(1000, now, split); sum < 990 {
		t.Errorf("the three nodes that are left take %.1f of 1000", sum)
	}
}

// TestShare_NeverAddsUpToMore changes what nodes want at random.
func TestShare_NeverAddsUpToMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Hour
		names := []ids.Node{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "nodes")]
		m := gather(now, names...)
		calm := 0
		for range 20 {
			calm++
			for _, n := range names {
				if rapid.IntRange(0, 5).Draw(t, "change") == 0 {
					m[n].wants = byClass{Foreground: rapid.Int64Range(0, 2000).Draw(t, "foreground"), Repair: rapid.Int64Range(0, 2000).Draw(t, "repair")}
					calm = 0
				}
			}
			sum := m.turn(1000, now, allHear)
			if limit := 1000 * (1 + keptPart); sum > limit+1e-6 {
				t.Fatalf("the nodes take %.1f of 1000 together", sum)
			}
			if calm >= 3 && sum < 999 {
				t.Fatalf("after %d calm turns the nodes take only %.1f of 1000", calm, sum)
			}
			now += time.Second
		}
	})
}
