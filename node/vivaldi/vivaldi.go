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
// unit. docs/coordinates.md has the equations and the measured accuracy.
package vivaldi

import (
	"slices"
	"strings"
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
	// BadRTT: negative, or above Config.MaxRTT. Nothing was changed.
	BadRTT
	// BadCoordinate: not finite, out of range, or of more dimensions than
	// this space has. Nothing was changed.
	BadCoordinate
	// BadTime: before what was already observed of this peer. Nothing was
	// changed.
	BadTime
	// Doubted: valid, but so far from what the coordinates predict that it
	// has little weight. The link counts as measured all the same.
	Doubted
	verdicts = 5
)

var verdictNames = [verdicts]string{
	"accepted", "round-trip time out of range", "coordinate not valid", "older than the last sample", "doubted",
}

func (v Verdict) String() string {
	if v < verdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}

// LeastRTT is what a round trip counts as that the clock could not tell from none:
// the two nodes are near each other.
const LeastRTT = time.Microsecond

// beside is how far from a plane, in milliseconds, Restore puts a node at most.
const beside = 20

// Taken reports whether the sample was used: Accepted or Doubted.
func (v Verdict) Taken() bool { return v == Accepted || v == Doubted }

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

	table  []peer           // at most config.Peers slots
	free   []int32          // slots that hold nobody
	index  map[string]int32 // slot by ID
	near   []int32          // slots of the near neighbours, nearest first
	far    []int32          // slots of the random ones
	cursor int              // the slot where the search for near peers goes on
	until  int              // samples until that search
	counts [verdicts]uint64

	renewed  int     // samples since a random neighbour was last replaced
	surprise float64 // residuals of newly drawn peers, in own errors, a moving mean
}

// peer is what a node knows of another one; a slot of the table.
type peer struct {
	id       string
	at       Coordinate
	window   [MaxWindow]float32 // ms, a ring of the last samples
	samples  uint64
	rtt      float64       // ms, of the window; 0 before the first sample
	last     time.Duration // of the last sample, or when met
	asked    time.Duration // when Next last named it
	misses   uint8         // times that Next named it without a sample since
	restless float32       // ms, how far its coordinate goes between samples, a moving mean
	role     role
	used     bool
	drawn    bool // a random neighbour by renew that has not answered since
}

// role says in which half of the neighbours a peer is.
type role uint8

const (
	stranger role = iota
	nearby
	random
)

// NewNode returns a node at the origin that knows nothing.
func NewNode(c Config, s Source) (*Node, error) {
	if err := c.Validate(); err != nil {
		return nil, fault.Wrap(fault.Invalid, "vivaldi.NewNode", "", err)
	}
	return &Node{config: c, source: s, err: 1, index: map[string]int32{}}, nil
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
// long passes a larger error, so that the node moves faster. A coordinate of fewer
// dimensions is put a little beside its plane: forces between nodes that all lie
// in one plane never lead out of it.
func (n *Node) Restore(c Coordinate) error {
	const op fault.Op = "vivaldi.Restore"
	if d := c.Dimensions(); d > n.config.Dimensions {
		return fault.Errorf(fault.Invalid, op, "", "%d dimensions, this space has %d", d, n.config.Dimensions)
	}
	if err := c.Check(); err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	for i := range c.Vector {
		n.vector[i] = float64(c.Vector[i])
	}
	for i := c.Dimensions(); i < n.config.Dimensions; i++ {
		n.vector[i] = beside * n.chance()
	}
	n.height, n.err = float64(c.Height), min(float64(c.Error), 1)
	return nil
}

// valid reports whether a coordinate is one of this space.
func (n *Node) valid(c *Coordinate) bool {
	for _, v := range c.Vector[n.config.Dimensions:] {
		if v != 0 {
			return false
		}
	}
	return c.Valid()
}

// Observe takes one sample: the round-trip time to a peer, the coordinate that
// came with the answer, and when. It returns what became of it. Samples of any
// peer count, whoever chose to measure it.
func (n *Node) Observe(id string, rtt time.Duration, remote Coordinate, now time.Duration) Verdict {
	v := n.observe(id, rtt, &remote, now)
	n.counts[v]++
	return v
}

func (n *Node) observe(id string, rtt time.Duration, remote *Coordinate, now time.Duration) Verdict {
	if rtt < 0 || rtt > n.config.MaxRTT {
		return BadRTT
	}
	rtt = max(rtt, LeastRTT)
	if !n.valid(remote) {
		return BadCoordinate
	}
	slot, known := n.index[id]
	if known && n.table[slot].samples > 0 && now < n.table[slot].last {
		return BadTime
	}
	if !known {
		slot = n.add(id)
	}
	p := &n.table[slot]
	if p.samples > 0 {
		p.restless += (float32(p.at.apart(remote)) - p.restless) / 4
	}
	p.at, p.last, p.misses = *remote, now, 0
	p.window[p.samples%uint64(n.config.Window)] = float32(milliseconds(rtt))
	p.samples++
	p.rtt = n.filter(p)
	n.search()
	n.renew(now)
	return n.move(slot, now)
}

// filter is the moving percentile of Ledlie et al., section 4.1.
func (n *Node) filter(p *peer) float64 {
	w := p.window
	s := w[:min(p.samples, uint64(n.config.Window))]
	slices.Sort(s)
	return float64(s[int(n.config.Percentile/100*float64(len(s)-1))])
}

// Estimate returns the round-trip time to expect to a peer whose published
// coordinate is remote: the last measurement where it is fresh, else a
// prediction. It works for peers that the node has never met.
func (n *Node) Estimate(id string, remote Coordinate, now time.Duration) Estimate {
	if slot, ok := n.index[id]; ok {
		if p := &n.table[slot]; p.samples > 0 && now-p.last <= n.config.Fresh {
			return Estimate{RTT: duration(p.rtt), Measured: true, Age: now - p.last}
		}
	}
	return Estimate{RTT: n.Coordinate().Predict(remote)}
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
	Near       bool          // it is of the near half
}

// Known returns what the node knows of its peers, by ID.
func (n *Node) Known() []Peer {
	out := make([]Peer, 0, len(n.index))
	for _, slot := range n.index {
		p := &n.table[slot]
		out = append(out, Peer{p.id, p.at, duration(p.rtt), p.samples, p.last, p.role != stranger, p.role == nearby})
	}
	slices.SortFunc(out, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	return out
}
