package vivaldi

import (
	"math"
	"time"
)

// The weights of a move, found on measured networks (docs/coordinates.md).
const (
	// least is the shortest length, in milliseconds, that stretches are taken
	// relative to: below it lie clocks and kernels, not networks.
	least = 10
	// softness is the relative stretch where a spring stops pulling in
	// proportion and begins to pull evenly, however long it is.
	softness = 0.3
	// limber bounds how many times longer than the measured one a predicted
	// length counts, so that a far lie has no more pull than a near truth.
	limber = 4
	// nearWeight is the weight of a near neighbour beside a random one: near
	// ones are many for what they say about the rest of the world.
	nearWeight = 0.35
	// doubt is how many times the node's own error, beyond doubtFloor, a
	// residual is when it loses half its trust.
	doubt = 4
	// doubtFloor keeps a node that is nearly perfect from doubting everybody.
	doubtFloor = 0.15
	// tooFar is the share of a residual that counts for doubt where the
	// prediction is too long, for a peer of at least proven samples: a round
	// trip cannot be shortened by a lie, and that the peer stays where it says
	// (calm) shows only with time.
	tooFar = 0.4
	proven = 4
	// alarm is how many times the node's own error the residuals of newly
	// drawn peers are, in the mean, when it takes itself to be displaced: liars
	// are too few for it, as each counts at most surpriseLimit.
	alarm         = 1.2
	surpriseLimit = 3
	// bold is the least own error by which a displaced node steps.
	bold = 0.5
	// calm is how many milliseconds a peer's coordinate goes between samples
	// when the peer loses half its trust.
	calm = 20
	// learnFloor is the least trust with which the error estimate learns, so
	// that a node whose surroundings all changed comes to doubt itself.
	learnFloor = 0.2
	// settling is how many rounds of its neighbours a new node takes one by one,
	// each alone: their quarrel shakes it out of folds.
	settling = 3
	// together is how much longer a step is where all neighbours agreed on it.
	together = 3
	// errorFloor is the least error that a peer is believed to have.
	errorFloor = 0.05
)

// pull is what one peer wants of this node.
type pull struct {
	direction [MaxDimensions]float64 // unit vector from the peer to here
	residual  float64                // ms, how much too near the two are
	missed    float64                // by what share the prediction missed, not counting a fellow's heights
	weight    float64
	trust     float64 // 0 to 1
}

// move takes one step from all neighbours' last samples and the newest one
// (Dabek et al., section 2.5, with neighbour decay, Ledlie et al., section
// 4.2), and says whether the newest one was believed.
func (n *Node) move(newest int32, now time.Duration) Verdict {
	var sum [MaxDimensions]float64
	var up, total float64
	own := n.err
	if n.alarmed() {
		own = max(own, bold)
	}
	share := n.fellowShare()
	settled := n.counts[Accepted] > uint64(settling*n.config.Neighbours)
	take := func(slot int32) {
		l := n.pull(&n.table[slot], now)
		if l.weight == 0 {
			return
		}
		if n.table[slot].isFellow() {
			l.weight *= share
		}
		remote := max(float64(n.table[slot].at.Error), errorFloor)
		if !settled { // alone it has the whole pull: what lies far may not throw us there
			l.residual = max(l.residual, -max(n.table[slot].rtt, least))
		}
		step := l.weight * l.residual * own / (own + remote)
		for i := range n.config.Dimensions {
			sum[i] += step * l.direction[i]
		}
		up += step
		total += l.weight
	}
	p := &n.table[newest]
	if settled {
		for _, slot := range n.near {
			take(slot)
		}
		for _, slot := range n.far {
			take(slot)
		}
	}
	if p.role == stranger || !settled {
		take(newest)
	}
	l := n.pull(p, now)
	if p.drawn {
		p.drawn = false
		n.surprise += (min(l.missed/max(n.err, errorFloor), surpriseLimit) - n.surprise) / 4
	}
	n.learn(p, &l)
	if total > 0 {
		total /= n.config.StepPosition
		if settled {
			total /= together
		}
		for i := range n.config.Dimensions {
			n.vector[i] += sum[i] / total
		}
		if !n.config.NoHeight {
			n.height = max(0, n.height+up/total)
		}
	}
	n.fall()
	n.confine()
	if l.trust < 0.5 {
		return Doubted
	}
	return Accepted
}

// alarmed reports whether peers drawn by chance disagree with the node so much
// more than its own neighbours that rather the node is displaced, together with
// them, than the others lie: half the network was away, for example.
func (n *Node) alarmed() bool { return n.surprise > alarm }

// pull computes what a peer's last sample wants. It has no weight where there
// is none, or none within Config.Horizon.
func (n *Node) pull(p *peer, now time.Duration) pull {
	var l pull
	age := now - p.last
	if p.samples == 0 || age >= n.config.Horizon {
		return l
	}
	flat := n.direction(&p.at, &l.direction)
	d := flat + n.height + float64(p.at.Height)
	l.residual = p.rtt - d
	l.missed = relative(p.rtt, d)
	x := l.missed / (doubt*n.err + doubtFloor)
	if l.residual < 0 && p.samples >= proven {
		x *= tooFar
	}
	x *= x
	if p.isFellow() {
		l.missed = relative(p.rtt, flat)
	}
	r := float64(p.restless) / calm
	l.trust = 1 / ((1 + x*x) * (1 + r*r))
	length := max(p.rtt, d/limber, least)
	stretch := l.residual / length
	l.weight = l.trust / (length * math.Sqrt(stretch*stretch+softness*softness))
	l.weight *= 1 - float64(age)/float64(n.config.Horizon)
	if p.role == nearby {
		l.weight *= nearWeight
	}
	return l
}

// relative is how far off a predicted round trip is, in milliseconds both, of
// the longer of the two.
func relative(measured, predicted float64) float64 {
	return math.Abs(measured-predicted) / max(measured, predicted, 2*least)
}

// learn moves the error estimate towards a sample's (Dabek et al., section 2.5).
func (n *Node) learn(p *peer, l *pull) {
	remote := max(float64(p.at.Error), errorFloor)
	step := n.config.StepError * n.err / (n.err + remote) * max(l.trust, learnFloor)
	n.err = min(l.missed*step+n.err*(1-step), 1)
}

// direction puts the unit vector from a coordinate to here into u and returns
// the distance without heights, in milliseconds (Dabek et al., section 5.4).
func (n *Node) direction(c *Coordinate, u *[MaxDimensions]float64) float64 {
	var sum float64
	for i := range n.config.Dimensions {
		u[i] = n.vector[i] - float64(c.Vector[i])
		sum += u[i] * u[i]
	}
	flat := math.Sqrt(sum)
	scale := 1 / flat
	if flat < 1e-6 { // two nodes at one place part in a random direction
		sum = 0
		for i := range n.config.Dimensions {
			u[i] = n.chance()
			sum += u[i] * u[i]
		}
		scale = 1 / max(math.Sqrt(sum), 1e-9)
	}
	for i := range n.config.Dimensions {
		u[i] *= scale
	}
	return flat
}

// chance draws a number from -1 to 1.
func (n *Node) chance() float64 { return float64(n.source.Uint64()>>11)/(1<<52) - 1 }

// fall pulls the node towards the origin by (|x| / rho)^2 milliseconds (Ledlie
// et al., section 7.2), so that the whole does not wander off.
func (n *Node) fall() {
	if n.config.GravityRadius == 0 {
		return
	}
	var sum float64
	for i := range n.config.Dimensions {
		sum += n.vector[i] * n.vector[i]
	}
	scale := max(0, 1-math.Sqrt(sum)/(n.config.GravityRadius*n.config.GravityRadius))
	for i := range n.config.Dimensions {
		n.vector[i] *= scale
	}
}

// confine keeps what is published valid.
func (n *Node) confine() {
	for i := range n.config.Dimensions {
		n.vector[i] = min(max(n.vector[i], -MaxPosition), MaxPosition)
	}
	n.height = min(n.height, MaxPosition)
}
