package placement

import (
	"math"
	"slices"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// Distance says how far two nodes are from each other, false where that is not
// known.
type Distance func(a, b ids.Node) (time.Duration, bool)

// Probe measures how far nodes are from another one, now. A node that did not
// answer has 0; one is left out where that could not be found. It may block for as
// long as the caller of this package can wait. Nil: nothing is measured.
type Probe func(from ids.Node, to []ids.Node) map[ids.Node]time.Duration

// lasting makes a choice that lasts. The function choose names the best candidate,
// and the next best where that one is away; both are measured. Then choose decides
// anew: between these two where distance decides, and against one that does not
// answer.
func lasting(active ids.Node, candidates []Candidate, apart Distance, probe Probe, choose func([]Candidate, Distance) (ids.Node, bool)) (ids.Node, bool) {
	best, ok := choose(candidates, apart)
	if !ok || probe == nil {
		return best, ok
	}
	next, ok := choose(with(candidates, best, func(c *Candidate) { c.Away = true }), apart)
	if !ok {
		return best, true // there is nothing to choose
	}
	found := probe(active, []ids.Node{best, next})
	answered := false
	for _, id := range []ids.Node{best, next} {
		switch rtt, known := found[id]; {
		case known && rtt > 0:
			answered = true
		case known:
			candidates = with(candidates, id, func(c *Candidate) { c.Silent = true })
		}
	}
	return choose(candidates, func(a, b ids.Node) (time.Duration, bool) {
		if rtt := found[b]; a == active && rtt > 0 {
			return rtt, true
		}
		if answered || apart == nil {
			return 0, false // what was not measured comes after what was
		}
		return apart(a, b)
	})
}

// with returns the candidates with a change to one of them.
func with(candidates []Candidate, id ids.Node, change func(*Candidate)) []Candidate {
	out := slices.Clone(candidates)
	for i := range out {
		if out[i].Node == id {
			change(&out[i])
		}
	}
	return out
}

// measured returns the candidates with their round trips to the active.
func measured(candidates []Candidate, active ids.Node, apart Distance) []Candidate {
	out := append([]Candidate(nil), candidates...)
	for i := range out {
		if apart == nil || out[i].Node == active {
			continue
		}
		if rtt, ok := apart(active, out[i].Node); ok {
			out[i].RTT = rtt
		}
	}
	return out
}

// step is a round trip by the step that it falls into: each begins a quarter
// above the one before, the first at a millisecond. Nodes in one step are as
// good as equally far. What is not known comes last.
func step(rtt time.Duration) int {
	if rtt <= 0 {
		return math.MaxInt
	}
	n := 0
	for limit := time.Millisecond; rtt > limit && n < 100; limit += limit / 4 {
		n++
	}
	return n
}
