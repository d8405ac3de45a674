package coordinates

import (
	"testing"
)

// farthest returns the longest predicted round trip between two hosts of one site,
// in milliseconds, and the largest error that a node says it has.
func (w *world) farthest(s Sites) (ms, relative float64) {
	for i, n := range w.nodes {
		at := n.Coordinate()
		relative = max(relative, float64(at.Error))
		for j := range i {
			if i/s.Hosts == j/s.Hosts {
				ms = max(ms, at.Distance(w.nodes[j].Coordinate()))
			}
		}
	}
	return ms, relative
}

// TestLAN_PredictsItself has nodes that know nothing but each other on a LAN.
func TestLAN_PredictsItself(t *testing.T) {
	for _, hosts := range []int{3, 20} {
		s := small()
		lan := Sites{NewCities(1, 1), hosts}
		s.space = lan
		w := play(t, s)
		ms, relative := w.farthest(lan)
		t.Logf("%d hosts: at most %.3f ms predicted, error %.3f", hosts, ms, relative)
		if ms > 0.15 || relative > 0.1 {
			t.Errorf("%d hosts: %.3f ms predicted between two, error %.3f; want at most 0.15 ms and 0.1", hosts, ms, relative)
		}
	}
}

// access is a world of sites, some of which are far from the core of the network:
// a long height that their LANs contradict.
func access(seed uint64) *Cities {
	c := NewCities(20, seed)
	for i := range c.mile {
		if i%4 == 0 {
			c.mile[i] = 60
		}
	}
	return c
}

// TestLAN_LeavesTheWideAreaAsItIs puts many hosts where one stood. Then most
// neighbours of a node are on its LAN.
func TestLAN_LeavesTheWideAreaAsItIs(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		s := small()
		s.seed, s.rounds, s.least = seed, 800, 1
		s.space = access(seed)
		one := play(t, s).accuracy(true)
		s.space = Sites{access(seed), 20}
		many := play(t, s).accuracy(true)
		t.Logf("seed %d: %.4f / %.3f with one host a site, %.4f / %.3f with twenty", seed, one.MedianError, one.P90Error, many.MedianError, many.P90Error)
		if many.MedianError > 1.3*one.MedianError || many.P90Error > 1.2*one.P90Error {
			t.Errorf("seed %d: relative error %.4f / %.3f with twenty hosts a site, want at most 30 and 20 %% more than %.4f / %.3f",
				seed, many.MedianError, many.P90Error, one.MedianError, one.P90Error)
		}
	}
}

// TestSteps_AreBorne measures with clocks of 10 ms. Many round trips are none
// then, and others are twice what they should be.
func TestSteps_AreBorne(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		s := small()
		sites := Sites{NewCities(30, seed), 4}
		s.space, s.seed, s.rounds, s.least = sites, seed, 800, 1
		exact := play(t, s).accuracy(true)
		s.step = 10
		w := play(t, s)
		a := w.accuracy(true)
		ms, _ := w.farthest(sites)
		t.Logf("seed %d: %.4f / %.3f exactly, %.4f / %.3f in steps, at most %.1f ms on a LAN", seed, exact.MedianError, exact.P90Error, a.MedianError, a.P90Error, ms)
		if a.MedianError > exact.MedianError+0.015 || a.P90Error > exact.P90Error+0.03 {
			t.Errorf("seed %d: relative error %.4f / %.3f in steps, want at most 0.015 and 0.03 more than %.4f / %.3f",
				seed, a.MedianError, a.P90Error, exact.MedianError, exact.P90Error)
		}
		if ms > 20 {
			t.Errorf("seed %d: %.1f ms predicted between two hosts of a LAN, want no more than two steps", seed, ms)
		}
	}
}

// TestSteps_NodesOfOneLANFindTheirPlace measures nothing but round trips that the
// clocks cannot tell from none.
func TestSteps_NodesOfOneLANFindTheirPlace(t *testing.T) {
	s := small()
	lan := Sites{NewCities(1, 1), 10}
	s.space, s.step = lan, 10
	ms, relative := play(t, s).farthest(lan)
	if ms > 1 || relative > 0.1 {
		t.Errorf("%.3f ms predicted between two, error %.3f; want at most 1 ms and 0.1", ms, relative)
	}
}
