package reliability

import (
	"context"
	"math"
	"math/rand/v2"

	"cartwheel.dev/node/availability"
)

// Slice is what became of one slice over a time.
type Slice struct {
	Length float64 `json:"length_s"`
	// Waiting is how long it waited until members were back, takeovers aside.
	Waiting float64 `json:"waiting_s"`
	Stops   int     `json:"stops"`
	// Lost is how often no copy was left, and Outdated how often only an older one
	// was. Each time it began anew.
	Lost     int `json:"lost"`
	Outdated int `json:"outdated"`
}

// Frail is a group that fails often enough for a simulation: its members are missing
// for up to 0.3 % of the time. Formulas that hold there hold better for others.
func Frail(layout ...int) availability.Group {
	const hour = 3600.0
	g := availability.Group{
		Layout: layout, Operator: hour,
		Node:     availability.Process{Rate: 1 / (400 * hour), Out: hour / 2, Replaced: 2 * hour, Behind: 60},
		NodeLoss: availability.Process{Rate: 1 / (2000 * hour), Replaced: 2 * hour},
		Site:     availability.Process{Rate: 1 / (1500 * hour), Out: 3 * hour, Replaced: never, Behind: 60},
		SiteLoss: availability.Process{Rate: 1 / (9000 * hour), Replaced: 4 * hour},
	}
	if g.Level() == 1 { // there is nothing to copy, and nothing to catch up with
		g.Node.Behind, g.Node.Replaced = 0, never
	}
	return g
}

// copyOf is one member.
type copyOf struct {
	site int
	// isCurrent says that the row has it as normal. One that is out while the slice
	// waits still is.
	isCurrent bool
	isLost    bool    // its data is gone
	isOut     bool    // its node does not answer
	elsewhere bool    // it was replaced at another site while its own is away
	back      float64 // when its node is back
	replaced  float64 // when another node has the copy, while the slice serves
	caughtUp  float64 // when it is current again; +Inf: it does not catch up
}

// place is one site.
type place struct {
	isAway, isLost bool
	back           float64
}

// player plays the rules of a replica group, one event after the other.
type player struct {
	availability.Group
	chance  *rand.Rand
	needed  int // current copies; one where a person decided so, until there are more
	copies  []copyOf
	places  []place
	now     float64
	decides float64 // when a person does; +Inf: nobody has to
	out     Slice
}

// never is the time of what does not happen.
var never = math.Inf(1)

// Play plays a group for a time. Outages and repairs take exponential times. Errors:
// that of ctx.
func Play(ctx context.Context, g availability.Group, length float64, seed uint64) (Slice, error) {
	p := &player{Group: g, chance: rand.New(rand.NewPCG(seed, 2)), needed: availability.Needs(g.Level()), places: make([]place, len(g.Layout))}
	for site, n := range g.Layout {
		for range n {
			p.copies = append(p.copies, copyOf{site: site})
		}
	}
	p.anew()
	for n := 0; p.now < length; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return p.out, ctx.Err()
		}
		p.step(length)
	}
	p.out.Length = length
	return p.out, nil
}

// anew makes all copies current where their nodes are; what is away stays away.
func (p *player) anew() {
	for i := range p.copies {
		c := &p.copies[i]
		*c = copyOf{site: c.site, isCurrent: true, elsewhere: p.places[c.site].isAway, back: never, replaced: never, caughtUp: never}
	}
	p.decides = never
}

// reached reports whether a member answers.
func (p *player) reached(c *copyOf) bool {
	return !c.isOut && !c.isLost && (c.elsewhere || !p.places[c.site].isAway)
}

// current counts the current members that answer.
func (p *player) current() int {
	n := 0
	for i := range p.copies {
		if c := &p.copies[i]; c.isCurrent && p.reached(c) {
			n++
		}
	}
	return n
}

// serves reports whether the slice does.
func (p *player) serves() bool { return p.current() >= p.needed }

// step goes on to the next event and makes it.
func (p *player) step(length float64) {
	rates, total := p.rates()
	next, due := p.now+p.chance.ExpFloat64()/total, p.nextDue()
	served := p.serves()
	at := min(next, due, length)
	if !served {
		p.out.Waiting += at - p.now
	}
	if p.now = at; at >= length {
		return
	}
	if due <= next {
		p.arrive()
	} else {
		p.fail(rates, p.chance.Float64()*total)
	}
	p.settle()
	if served && !p.serves() {
		p.out.Stops++
	}
}

// rates are how often each member and each site fails now, by kind.
func (p *player) rates() (each []float64, total float64) {
	for i := range p.copies {
		node, loss := p.Node.Rate, p.NodeLoss.Rate
		if !p.reached(&p.copies[i]) {
			node, loss = 0, 0
		}
		each = append(each, node, loss)
	}
	for _, s := range p.places {
		site, loss := p.Site.Rate, p.SiteLoss.Rate
		if s.isAway {
			site, loss = 0, 0
		}
		each = append(each, site, loss)
	}
	for _, r := range each {
		total += r
	}
	return each, total
}

// fail makes what the drawn number stands for.
func (p *player) fail(rates []float64, drawn float64) {
	at := 0
	for at < len(rates)-1 && drawn >= rates[at] {
		drawn -= rates[at]
		at++
	}
	i, isLoss := at/2, at%2 == 1
	if i < len(p.copies) {
		c := &p.copies[i]
		if c.caughtUp = never; isLoss {
			c.isLost, c.isCurrent, c.replaced = true, false, p.now+p.exponential(p.NodeLoss.Replaced)
		} else {
			c.isOut, c.back, c.replaced = true, p.now+p.exponential(p.Node.Out), p.now+p.Node.Replaced
		}
		return
	}
	site := i - len(p.copies)
	s, replaced := &p.places[site], p.now+p.Site.Replaced
	if s.isAway, s.isLost, s.back = true, isLoss, p.now+p.exponential(p.Site.Out); isLoss {
		replaced = p.now + p.exponential(p.SiteLoss.Replaced)
		s.back = replaced
	}
	for j := range p.copies {
		c := &p.copies[j]
		if c.site != site || c.elsewhere {
			continue
		}
		if c.isOut || c.isLost {
			c.replaced = min(c.replaced, replaced) // the earlier failure counts
		} else {
			c.replaced = replaced
		}
		c.isLost = c.isLost || isLoss
		c.isCurrent = c.isCurrent && !isLoss
		c.caughtUp = never
	}
}

func (p *player) exponential(mean float64) float64 {
	if math.IsInf(mean, 1) {
		return never
	}
	return mean * p.chance.ExpFloat64()
}

// replacing is when a member is replaced: only a slice that serves does so.
func (p *player) replacing(c *copyOf) float64 {
	if c.isCurrent || p.reached(c) || !p.serves() {
		return never
	}
	return max(c.replaced, p.now)
}

// nextDue is when the next thing comes that is no failure.
func (p *player) nextDue() float64 {
	due := p.decides
	for i := range p.copies {
		c := &p.copies[i]
		due = min(due, c.back, c.caughtUp, p.replacing(c))
	}
	for _, s := range p.places {
		if s.isAway {
			due = min(due, s.back)
		}
	}
	return due
}

// arrive makes what is due now.
func (p *player) arrive() {
	if p.decides <= p.now {
		p.decide()
		return
	}
	for i := range p.places {
		if s := &p.places[i]; s.isAway && s.back <= p.now {
			*s = place{}
			for j := range p.copies {
				if c := &p.copies[j]; c.site == i {
					c.elsewhere = false
				}
			}
		}
	}
	for i := range p.copies {
		c := &p.copies[i]
		replacing := p.replacing(c)
		switch {
		case c.back <= p.now:
			c.isOut, c.back = false, never
		case c.caughtUp <= p.now:
			c.isCurrent, c.caughtUp = true, never
		case replacing <= p.now:
			*c = copyOf{site: c.site, isCurrent: true, elsewhere: p.places[c.site].isAway, back: never, replaced: never, caughtUp: never}
		}
	}
}

// settle does what members do at once: they take out of the row what does not
// answer, where enough are left, and begin to catch up.
func (p *player) settle() {
	n := p.current()
	for i := range p.copies {
		c := &p.copies[i]
		switch isReached := p.reached(c); {
		case n >= p.needed && !isReached:
			c.isCurrent = false
		case n == 0 || !isReached:
			c.caughtUp = never // there is none to catch up with, or it is away again
		case !c.isCurrent && c.caughtUp == never:
			c.caughtUp = p.now + p.Node.Behind
		}
	}
	switch usual := availability.Needs(p.Level()); {
	case n >= usual:
		p.needed, p.decides = usual, never
	case n >= p.needed:
		p.decides = never
	case p.decides == never && p.needsPerson():
		p.decides = p.now + p.Operator
	}
}

// needsPerson reports whether nothing that comes back by itself makes the slice serve.
func (p *player) needsPerson() bool {
	whole, current := 0, 0
	for i := range p.copies {
		c := &p.copies[i]
		if c.isLost {
			continue
		}
		if whole++; c.isCurrent {
			current++
		}
	}
	return current == 0 || whole < p.needed
}

// decide is what a person does: the slice goes on with what is left. Where no
// current copy is, it begins anew.
func (p *player) decide() {
	isLost, isCurrent := true, false
	for i := range p.copies {
		isLost = isLost && p.copies[i].isLost
		isCurrent = isCurrent || p.copies[i].isCurrent
	}
	switch {
	case isLost:
		p.out.Lost++
	case !isCurrent:
		p.out.Outdated++
	default:
		p.needed, p.decides = 1, never
		return
	}
	p.anew()
}
