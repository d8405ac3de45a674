package budget

import (
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

const (
	// freshFor is how old a report may be that a division counts on.
	freshFor = 3500 * time.Millisecond
	// presentFor is how long a node counts as one that sends, since it was last
	// heard. A node that hears no other one takes an equal part, so the others
	// leave it that part. What broke the connection of two nodes breaks the way
	// through a third one within seconds, or is the end of one of them.
	presentFor = time.Minute
)

// heard is what another node said of one direction, and when.
type heard struct {
	at     time.Duration
	wanted byClass // bytes per second
	// taken is the rate that the node keeps to now, in bytes per second.
	taken float64
}

// group is the nodes that share the rate of one direction between two sites, as one
// of them sees it: all nodes of both sites, since a node counts what clients of the
// other site send to it.
type group struct {
	self   ids.Node
	others map[ids.Node]heard // of the roster; a node counts as heard when it comes into it
}

// update takes in the roster: nodes of both sites.
func (g *group) update(roster []ids.Node, now time.Duration) {
	next := make(map[ids.Node]heard, len(roster))
	for _, n := range roster {
		if n == g.self {
			continue
		}
		h, known := g.others[n]
		if !known {
			h = heard{at: now - freshFor - 1} // present, and it said nothing yet
		}
		next[n] = h
	}
	g.others = next
}

// share returns the rate that this node may keep to, of all that there is, in bytes
// per second. Nodes that are silent have an equal part each. Of the rest, this node
// takes the part that the division gives it, and no more than the others have left:
// one that gets less says so with its next report, and only then may another one
// have it.
func (g *group) share(total float64, shares geoconfig.Shares, mine byClass, now time.Duration) float64 {
	wanted := map[ids.Node]byClass{g.self: mine}
	silent, taken := 0, 0.0
	for n, h := range g.others {
		switch age := now - h.at; {
		case age <= freshFor:
			wanted[n] = h.wanted
			taken += h.taken
		case age <= presentFor:
			silent++
		}
	}
	all := float64(len(wanted) + silent)
	there := total * float64(len(wanted)) / all
	least := total * keptPart / all
	return max(min(divide(there, shares, wanted)[g.self], there-taken), least)
}
