// Package vivaldi gives every node of a network a coordinate from which the
// round-trip time between any two nodes is predicted, from the round trips
// that each node measures anyhow: the Vivaldi algorithm (Dabek, Cox, Kaashoek,
// Morris: "Vivaldi: A Decentralized Network Coordinate System", SIGCOMM 2004)
// with what Ledlie, Gardner and Seltzer added for real networks ("Network
// Coordinates in the Wild", NSDI 2007), and defences against nonsense and liars.
//
// A Node is one participant. Whoever owns it hands it each sample (Observe),
// asks whom to measure next (Next), publishes its Coordinate, and asks it about
// links (Estimate). The package sends nothing, reads no clock and has no
// randomness of its own: times are durations since any fixed moment, and chance
// comes from the Source, so that a run replays exactly from a seed.
//
// A Node is not safe for concurrent use: one goroutine owns it, or a lock
// guards it. Coordinates are plain values: share freely. Lengths are
// milliseconds of round-trip time throughout, errors are relative and without
// unit.
package vivaldi

import (
	"math"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Source is where a Node's chance comes from, for example a rand.PCG with a
// seed of one's own. Only the node that it was given to may use it.
type Source interface {
	Uint64() uint64
}

// Verdict says what a Node did with a sample.
type Verdict uint8

// The verdicts.
const (
	// Accepted: the sample is believed and moved the coordinate.
	Accepted Verdict = iota
	// BadRTT: zero, negative, or above Config.MaxRTT. Nothing was changed.
	BadRTT
	// BadCoordinate: not finite, out of range, or of more dimensions than
	// this space has. Nothing was changed.
	BadCoordinate
	// BadTime: before what was already observed of this peer. Nothing was
	// changed.
	BadTime
	verdicts = 4
)

var verdictNames = [verdicts]string{"accepted", "round-trip time out of range", "coordinate not valid", "older than the last sample"}

func (v Verdict) String() string {
	if v < verdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}

// Estimate is what a Node says about a link.
type Estimate struct {
	// RTT is the round-trip time to expect.
	RTT time.Duration
	// Measured says that RTT was measured on this very link within
	// Config.Fresh; else it is a prediction.
	Measured bool
	// Age is how long ago the last measurement was, where Measured.
	Age time.Duration
}

// Node is one participant: its coordinate and what it knows of its peers.
type Node struct {
	config Config
	source Source

	vector [MaxDimensions]float64 // ms
	height float64                // ms
	err    float64                // relative

	peers  map[string]*peer
	counts [verdicts]uint64
}

// peer is what a node knows of another one.
type peer struct {
	id      string
	at      Coordinate
	window  [MaxWindow]float32 // ms, a ring
	samples uint64
	rtt     float64       // ms, of the window; 0 before the first sample
	last    time.Duration // of the last sample
	asked   time.Duration // when Next last named it
}

// NewNode returns a node at the origin that knows nothing.
func NewNode(c Config, s Source) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, fault.Wrap(fault.Invalid, "vivaldi.NewNode", "", err)
	}
	return &Node{config: c, source: s, err: 1, peers: map[string]*peer{}}, nil
}

// Coordinate returns what to publish.
func (n *Node) Coordinate() Coordinate {
	var c Coordinate
	for i := range n.config.Dimensions {
		c.Vector[i] = float32(n.vector[i])
	}
	c.Height, c.Error = float32(n.height), float32(n.err)
	return c
}

// Restore puts the node where it was before it restarted. Whoever was away for
// long passes a larger error, so that the node moves faster.
func (n *Node) Restore(c Coordinate) error {
	const op fault.Op = "vivaldi.Node.Restore"
	if err := n.check(c); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	for i := range c.Vector {
		n.vector[i] = float64(c.Vector[i])
	}
	n.height, n.err = float64(c.Height), float64(c.Error)
	return nil
}

func (n *Node) check(c Coordinate) error {
	if d := c.Dimensions(); d > n.config.Dimensions {
		return fault.Errorf(fault.Invalid, "vivaldi.Node.Check", "", "%d dimensions, this space has %d", d, n.config.Dimensions)
	}
	return c.Check()
}

// Observe takes one sample: the round-trip time to a peer, the coordinate that
// came with the answer, and when. It returns what became of it.
func (n *Node) Observe(id string, rtt time.Duration, remote Coordinate, now time.Duration) Verdict {
	v := n.observe(id, rtt, remote, now)
	n.counts[v]++
	return v
}

func (n *Node) observe(id string, rtt time.Duration, remote Coordinate, now time.Duration) Verdict {
	if rtt <= 0 || rtt > n.config.MaxRTT {
		return BadRTT
	}
	if !remote.Valid() || remote.Dimensions() > n.config.Dimensions {
		return BadCoordinate
	}
	p := n.peers[id]
	if p != nil && p.samples > 0 && now < p.last {
		return BadTime
	}
	if p == nil {
		p = n.add(id)
	}
	p.at, p.last = remote, now
	p.window[p.samples%uint64(n.config.Window)] = float32(milliseconds(rtt))
	p.samples++
	p.rtt = n.filter(p)
	n.step(p)
	return Accepted
}

// filter is the moving percentile of Ledlie et al., section 5.1.
func (n *Node) filter(p *peer) float64 {
	w := p.window
	s := w[:min(p.samples, uint64(n.config.Window))]
	slices.Sort(s)
	return float64(s[int(n.config.Percentile/100*float64(len(s)-1))])
}

// step is one move of the algorithm, Dabek et al., figure 3.
func (n *Node) step(p *peer) {
	d, u := n.direction(p.at)
	weight := n.err / (n.err + float64(p.at.Error) + 1e-9)
	sample := math.Abs(d-p.rtt) / p.rtt
	n.err = min(sample*n.config.StepError*weight+n.err*(1-n.config.StepError*weight), 1)
	force := n.config.StepPosition * weight * (p.rtt - d)
	for i := range n.config.Dimensions {
		n.vector[i] += force * u[i]
	}
	if !n.config.NoHeight {
		n.height = max(0, n.height+force*u[MaxDimensions])
	}
}

// direction returns the distance to a coordinate and the unit vector from it
// to here; the last component is the height's (Dabek et al., section 5.4).
func (n *Node) direction(c Coordinate) (float64, [MaxDimensions + 1]float64) {
	var u [MaxDimensions + 1]float64
	var sum float64
	for i := range n.config.Dimensions {
		u[i] = n.vector[i] - float64(c.Vector[i])
		sum += u[i] * u[i]
	}
	flat := math.Sqrt(sum)
	if flat < 1e-6 { // two nodes at one place part in a random direction
		sum = 0
		for i := range n.config.Dimensions {
			u[i] = float64(n.source.Uint64()>>11)/(1<<52) - 1
			sum += u[i] * u[i]
		}
		scale := 1 / max(math.Sqrt(sum), 1e-9)
		for i := range n.config.Dimensions {
			u[i] *= scale
		}
		u[MaxDimensions] = 1
		return flat + n.height + float64(c.Height), u
	}
	for i := range n.config.Dimensions {
		u[i] /= flat
	}
	u[MaxDimensions] = 1
	return flat + n.height + float64(c.Height), u
}

// Estimate returns the round-trip time to expect to a peer whose published
// coordinate is remote: the last measurement where it is fresh, else a
// prediction. It works for peers that the node has never met.
func (n *Node) Estimate(id string, remote Coordinate, now time.Duration) Estimate {
	if p := n.peers[id]; p != nil && p.samples > 0 && now-p.last <= n.config.Fresh {
		return Estimate{RTT: duration(p.rtt), Measured: true, Age: now - p.last}
	}
	return Estimate{RTT: n.Coordinate().Predict(remote)}
}

// Meet tells the node of a peer that it may measure, with the coordinate that
// the peer publishes. It reports whether the peer is one to measure.
func (n *Node) Meet(id string, at Coordinate, now time.Duration) bool {
	if !at.Valid() || at.Dimensions() > n.config.Dimensions {
		return false
	}
	if p := n.peers[id]; p != nil {
		p.at = at
		return true
	}
	p := n.add(id)
	p.at, p.last = at, now
	return true
}

// Next returns the peer to measure now, the neighbour that waited longest.
// It reports false where the node knows nobody.
func (n *Node) Next(now time.Duration) (id string, ok bool) {
	var best *peer
	for _, p := range n.peers {
		if best == nil || p.asked < best.asked || p.asked == best.asked && p.id < best.id {
			best = p
		}
	}
	if best == nil {
		return "", false
	}
	best.asked = now
	return best.id, true
}

// Forget drops what is known of a peer, for example one that left the roster.
func (n *Node) Forget(id string) { delete(n.peers, id) }

func (n *Node) add(id string) *peer {
	if len(n.peers) >= n.config.Peers {
		var oldest *peer
		for _, p := range n.peers {
			if oldest == nil || p.last < oldest.last || p.last == oldest.last && p.id < oldest.id {
				oldest = p
			}
		}
		delete(n.peers, oldest.id)
	}
	p := &peer{id: id, asked: -1}
	n.peers[id] = p
	return p
}

// Counts returns how many samples met each verdict, by the verdict's number.
func (n *Node) Counts() []uint64 { return slices.Clone(n.counts[:]) }

// Peer is what a node knows of another, for people to look at.
type Peer struct {
	ID         string
	Coordinate Coordinate    // as last heard
	RTT        time.Duration // filtered; 0 where never measured
	Samples    uint64
	Last       time.Duration // when last measured or met
	Neighbour  bool          // Next names it by turns
}

// Known returns what the node knows of its peers, by ID.
func (n *Node) Known() []Peer {
	out := make([]Peer, 0, len(n.peers))
	for _, p := range n.peers {
		out = append(out, Peer{p.id, p.at, duration(p.rtt), p.samples, p.last, true})
	}
	slices.SortFunc(out, func(a, b Peer) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
