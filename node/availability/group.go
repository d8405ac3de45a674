package availability

import (
	"fmt"
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Process is one way in which a node or a site goes. Times are in seconds, and
// mean values of exponential ones.
type Process struct {
	Rate float64 // times a second
	// Out is how long it stays away; a loss is for good and has none.
	Out float64
	// Replaced is when other nodes have copies instead, from the failure on.
	// +Inf: never.
	Replaced float64
	// Behind is how long a member needs to catch up once it is back.
	Behind float64
}

// window is for how long after a failure a copy is missing: until it is back and
// has caught up, or until there is another one.
func (p Process) window() float64 {
	switch {
	case p.Rate == 0:
		return 0
	case p.Out == 0: // for good
		return p.Replaced
	case math.IsInf(p.Replaced, 1):
		return p.Out + p.Behind
	}
	return -p.Out*math.Expm1(-p.Replaced/p.Out) + p.Behind
}

// Group is what can happen to the members of one slice.
type Group struct {
	Layout []int // copies at each site; the first has the active
	// Node and Site are failures after which the data is there again, and the
	// others are for good.
	Node, NodeLoss Process
	Site, SiteLoss Process
	// Operator is how long a slice waits that needs a person, in seconds.
	Operator float64
}

// Level is the number of copies.
func (g Group) Level() int {
	n := 0
	for _, k := range g.Layout {
		n += k
	}
	return n
}

// Needs is the number of current copies without which a slice waits: two where its
// policy asks for three or more, else one.
func Needs(level int) int {
	if level >= 3 {
		return 2
	}
	return 1
}

// seconds is a year in them.
var seconds = Year.Seconds()

// Group says what can happen to a slice with this policy. Errors: Invalid, where the
// figures are wrong, where they do not fit the policy, or where failures are not rare.
func (f Figures) Group(p Policy) (Group, error) {
	if err := f.Validate(); err != nil {
		return Group{}, err
	}
	if err := f.check(p); err != nil {
		return Group{}, err
	}
	g := Group{Layout: layout(p.Level, p.Spread(f.Sites)), Operator: f.Operator.Seconds()}
	node, site := f.replaced(p)
	behind := f.Resynchronization.Seconds()
	if p.Level == 1 {
		behind = 0
	}
	g.Node = Process{Rate: f.NodeFailures / seconds, Out: f.NodeOutage.Seconds(), Replaced: node, Behind: behind}
	g.NodeLoss = Process{Rate: (f.NodeLosses + float64(f.Disks)*f.DiskLosses) / seconds, Replaced: node}
	g.Site = Process{Rate: f.SiteOutages / seconds, Out: f.SiteOutage.Seconds(), Replaced: site, Behind: behind}
	g.SiteLoss = Process{Rate: f.SiteLosses / seconds, Replaced: site}
	if math.IsInf(node, 1) {
		g.NodeLoss.Replaced = f.Repair.Seconds() + f.copyTime(p, 1)
	}
	if math.IsInf(site, 1) {
		g.SiteLoss.Replaced = f.Repair.Seconds() + f.copyTime(p, max(1, f.Nodes/f.Sites))
	}
	return g, g.rare()
}

// rare refuses processes that take so much of the time that the formulas, which
// count on rare failures, would be wrong.
func (g Group) rare() error {
	for _, x := range []struct {
		name, remedy string
		Process
	}{
		{"node_failures", "or a shorter node_outage", g.Node}, {"node_losses", "or a shorter repair, or faster copies", g.NodeLoss},
		{"site_outages", "or a shorter site_outage", g.Site}, {"site_losses", "or a shorter repair, or faster copies", g.SiteLoss},
	} {
		if share := x.Rate * max(x.window(), x.Out); share > maxShare {
			return fault.Errorf(fault.Invalid, "availability.rare", x.name, "copies are missing for more than %.0f %% of the time, and the formulas hold below that: give a lower rate, %s", 100*maxShare, x.remedy)
		}
	}
	return nil
}

// replaced is when other nodes have copies of what a node held, and of what a site
// held: +Inf where there are no other nodes.
func (f Figures) replaced(p Policy) (node, site float64) {
	node, site = math.Inf(1), math.Inf(1)
	per := f.Nodes / f.Sites
	if p.Level > 1 && f.Nodes > p.Level { // of one copy there is nothing to copy
		node = f.FailedAfter.Seconds() + f.copyTime(p, 1)
	}
	if f.Nodes-per >= p.Level && p.Spread(f.Sites) > 1 {
		site = f.FailedAfter.Seconds() + f.copyTime(p, per)
	}
	return node, site
}

// copyTime is how long the others need to copy what some nodes held, in seconds.
// One half of the nodes that take part sends, and the other half takes.
func (f Figures) copyTime(p Policy, gone int) float64 {
	bytes := float64(f.Slices) * float64(f.SliceBytes) * float64(p.Level) / float64(f.Nodes) * float64(gone)
	others := f.Nodes - gone
	if f.Scatter > 0 {
		others = min(others, f.Scatter*gone)
	}
	return bytes / (f.CopyRate * max(1, float64(others/2)))
}

// layout spreads copies over sites; the first ones have one more.
func layout(level, sites int) []int {
	out := make([]int, sites)
	for i := range level {
		out[i%sites]++
	}
	return out
}

// Copying is how long it takes until new copies of a lost node's slices are made,
// from the loss on. False: no other node can take them until the node is replaced.
// Errors: Invalid, as those of Group.
func (f Figures) Copying(p Policy) (time.Duration, bool, error) {
	g, err := f.Group(p)
	if err != nil {
		return 0, false, err
	}
	return time.Duration(g.NodeLoss.Replaced * float64(time.Second)), !math.IsInf(g.Node.Replaced, 1), nil
}

// String writes a policy for people.
func (p Policy) String() string {
	if p.Sites == 0 {
		return fmt.Sprintf("%d copies", p.Level)
	}
	return fmt.Sprintf("%d copies, %d sites", p.Level, p.Sites)
}
