package budget

import (
	"time"
	_ "time/tzdata" // the zones of budgets, on machines that know none

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// direction is one direction between two sites: the line, the nodes that share its
// rate, and what this node wanted lately.
type direction struct {
	line   *line
	group  group
	wanted byClass // bytes per second
	taken  float64 // the line's rate, in bytes per second
}

// pair is what this site and another one have. Out is what this node sends there;
// in is what clients of the other site send to this node. It is guarded by the
// Keeper's mutex, except for the lines.
type pair struct {
	out, in direction
	budget  *geoconfig.Budget // nil: none
	zone    *time.Location    // of its hours; nil: it is not known
}

func newPair(self ids.Node, clock func() time.Duration) *pair {
	one := func() direction { return direction{line: newLine(clock), group: group{self: self}} }
	return &pair{out: one(), in: one()}
}

// follow takes in the pair's budget. An error means that its zone is not known.
func (p *pair) follow(b *geoconfig.Budget) (err error) {
	before := p.budget
	p.budget = b
	if before == nil { // what nodes said of an earlier one is old
		p.out.group.others, p.in.group.others = nil, nil
	}
	if b == nil || b.Hours == nil {
		return nil
	}
	if before != nil && before.Hours != nil && before.Hours.Zone == b.Hours.Zone {
		return nil // looked up already
	}
	p.zone, err = time.LoadLocation(b.Hours.Zone)
	return err
}

// rate is what holds for the pair at a time, in bytes per second; 0: nothing.
func (p *pair) rate(at time.Time) float64 {
	b := p.budget
	switch {
	case b == nil:
		return 0
	case b.Hours != nil && p.zone == nil && b.Outside != 0:
		return float64(min(b.Rate, b.Outside)) / 8
	case b.Hours != nil && p.zone == nil:
		return float64(b.Rate) / 8
	case b.Hours != nil:
		at = at.In(p.zone)
	}
	return float64(b.RateAt(at)) / 8
}

// look sees what is wanted.
func (p *pair) look(since time.Duration) {
	for _, d := range []*direction{&p.out, &p.in} {
		d.wanted = d.line.demand()
		for c := range d.wanted {
			d.wanted[c] = int64(float64(d.wanted[c]) / max(since.Seconds(), 0.1))
		}
	}
}

// apply gives the lines their rates, and reports whether there are any.
func (p *pair) apply(wall time.Time, now time.Duration) bool {
	total := p.rate(wall)
	for _, d := range []*direction{&p.out, &p.in} {
		d.taken = 0
		shares := geoconfig.Shares{}
		if total > 0 {
			shares = p.budget.Shares
			d.taken = d.group.share(total, shares, d.wanted, now)
		}
		d.line.set(d.taken, shares)
	}
	return total > 0
}

// release lets everything pass.
func (p *pair) release() {
	p.out.line.set(0, geoconfig.Shares{})
	p.in.line.set(0, geoconfig.Shares{})
}

func (p *pair) close() {
	p.out.line.close()
	p.in.line.close()
}

// report is what the other nodes are told of a direction.
func (d *direction) report(from, to ids.Site) *pb.BudgetReport_Line {
	l := &pb.BudgetReport_Line{From: string(from), To: string(to), Taken: uint64(d.taken), Wanted: make([]uint64, classes)}
	for c, bytes := range d.wanted {
		l.Wanted[c] = uint64(bytes)
	}
	return l
}

// hear takes in what another node said. Only nodes of the roster count.
func (d *direction) hear(from ids.Node, l *pb.BudgetReport_Line, now time.Duration) {
	if _, member := d.group.others[from]; !member {
		return
	}
	h := heard{at: now, taken: float64(l.Taken)}
	for c := range min(len(l.Wanted), classes) {
		h.wanted[c] = int64(min(l.Wanted[c], 1<<50))
	}
	d.group.others[from] = h
}
