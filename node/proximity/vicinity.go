// Package proximity is what one process knows of its distances to the nodes: what
// it measured itself, its own coordinate, and the coordinates that others
// published, from which the rest is predicted. It joins package vivaldi, which
// does the mathematics, to package wire, which measures; it sends nothing and
// has no goroutine of its own. A Vicinity is safe for concurrent use.
package proximity

import (
	"cmp"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/vivaldi"
	"cartwheel.dev/node/wire"
)

const (
	// feedEvery is how often one peer's samples move the coordinate, so that a
	// busy connection does not outweigh the others; the least of the time counts.
	feedEvery = time.Second
	// windowHalf is half the time over which the least round trip is kept: a
	// machine that moved is seen to have moved within twice that.
	windowHalf = 5 * time.Minute
	// smoothing is the share of a new sample in the smoothed round trip.
	smoothing = 8
	// doubt is the relative error from which a coordinate predicts nothing.
	doubt = 0.9
	// restartError is the least error that a coordinate is taken up again with.
	restartError = 0.5
)

// Vicinity is one process's surroundings.
type Vicinity struct {
	clock func() time.Duration

	mu    sync.Mutex // guards below
	self  *vivaldi.Node
	peers map[ids.Node]*peer
	site  ids.Site // of this process; empty: unknown
}

type peer struct {
	at       vivaldi.Coordinate
	placed   bool // at is known
	least    [2]time.Duration
	counts   [2]int
	turned   time.Duration // when the halves of the window changed places
	smoothed time.Duration
	last     time.Duration // when last measured
	fed      time.Duration // when last handed to self
	best     time.Duration // since then; 0: nothing
	samples  uint64
	site     ids.Site   // as its row says; empty: unknown
	apart    []ids.Node // of its site, and measured by it to be elsewhere
}

// New returns a Vicinity that knows nothing. The clock gives the time since any
// fixed moment.
func New(clock func() time.Duration, chance vivaldi.Source) (*Vicinity, error) {
	self, err := vivaldi.NewNode(vivaldi.Default(), chance)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "proximity.New", "", err)
	}
	return &Vicinity{clock: clock, self: self, peers: map[ids.Node]*peer{}}, nil
}

func (v *Vicinity) find(id ids.Node) *peer {
	p := v.peers[id]
	if p == nil {
		p = &peer{}
		v.peers[id] = p
	}
	return p
}

// Sample takes a measurement in, with the coordinate that came with it. It does
// not block.
func (v *Vicinity) Sample(id ids.Node, rtt time.Duration, at *wire.Coordinate) {
	if rtt < 0 {
		return
	}
	rtt = max(rtt, vivaldi.LeastRTT)
	now := v.clock()
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.find(id)
	if at != nil {
		if c := ofWire(*at); c.Valid() {
			p.at, p.placed = c, true
		}
	}
	p.measured(rtt, now)
	if p.best == 0 || rtt < p.best {
		p.best = rtt
	}
	if p.placed && (p.fed == 0 || now-p.fed >= feedEvery) {
		v.self.Observe(string(id), p.best, p.at, now)
		p.fed, p.best = now, 0
	}
}

func (p *peer) measured(rtt, now time.Duration) {
	if p.samples == 0 {
		p.turned = now
	}
	if p.samples == 0 || now-p.last > vivaldi.Default().Fresh { // the old one says nothing of now
		p.smoothed = rtt
	}
	p.smoothed = max(p.smoothed+(rtt-p.smoothed)/smoothing, 1)
	for range 2 {
		if now-p.turned >= windowHalf {
			p.turned += windowHalf
			p.least[1], p.counts[1] = p.least[0], p.counts[0]
			p.least[0], p.counts[0] = 0, 0
		}
	}
	if now-p.turned >= windowHalf { // away for long
		p.turned = now
	}
	if p.least[0] == 0 || rtt < p.least[0] {
		p.least[0] = rtt
	}
	p.counts[0]++
	p.samples++
	p.last = now
}

// Place takes in the coordinate that a node published in its row. What came
// with a measurement is newer and stays.
func (v *Vicinity) Place(id ids.Node, at geoconfig.Coordinate) {
	c, ok := ofRow(at)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if p := v.find(id); p.samples == 0 || !p.placed {
		p.at, p.placed = c, true
		v.self.Meet(string(id), c, v.clock())
	}
}

// Forget drops a peer that left.
func (v *Vicinity) Forget(id ids.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.peers, id)
	v.self.Forget(string(id))
}

// Keep drops every peer that keep does not want.
func (v *Vicinity) Keep(keep func(ids.Node) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.peers {
		if !keep(id) {
			delete(v.peers, id)
			v.self.Forget(string(id))
		}
	}
}

// Restore takes up the coordinate that was published before a restart.
func (v *Vicinity) Restore(at geoconfig.Coordinate) {
	c, ok := ofRow(at)
	if !ok {
		return
	}
	c.Error = max(c.Error, restartError)
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.self.Restore(c) // one of other dimensions: it starts anew
}

// Next names the neighbour to measure now, half of them near and half random.
func (v *Vicinity) Next() (ids.Node, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, ok := v.self.Next(v.clock())
	return ids.Node(id), ok
}

// Coordinate is where this process is.
func (v *Vicinity) Coordinate() vivaldi.Coordinate {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.self.Coordinate()
}

// Estimate is how far a node is.
type Estimate struct {
	RTT time.Duration
	// Measured: on this very link, Age ago; else predicted from coordinates.
	Measured bool
	Age      time.Duration
}

// Estimate returns how far a node is: measured where that is recent, else
// predicted; false where neither is known.
func (v *Vicinity) Estimate(id ids.Node) (Estimate, bool) {
	now := v.clock()
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.peers[id]
	if p == nil {
		return Estimate{}, false
	}
	if age := now - p.last; p.samples > 0 && age <= vivaldi.Default().Fresh {
		return Estimate{RTT: p.smoothed, Measured: true, Age: age}, true
	}
	here := v.self.Coordinate()
	if !p.placed || here.Error >= doubt || p.at.Error >= doubt {
		return Estimate{}, false
	}
	if e := v.self.Estimate(string(id), p.at, now); e.Measured {
		return Estimate{RTT: e.RTT, Measured: true, Age: e.Age}, true
	}
	return Estimate{RTT: v.predict(p)}, true
}

// Between predicts how far two other nodes are from each other.
func (v *Vicinity) Between(a, b ids.Node) (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, q := v.peers[a], v.peers[b]
	if p == nil || q == nil || !p.placed || !q.placed || p.at.Error >= doubt || q.at.Error >= doubt {
		return 0, false
	}
	return v.predictOthers(a, p, b, q), true
}

// Link is what is known of the way to one node.
type Link struct {
	Node ids.Node
	// Least and Count are of the last five to ten minutes.
	Least    time.Duration
	Count    int
	Smoothed time.Duration
	Age      time.Duration // of the last sample
	Samples  uint64        // ever; 0: never measured
	// Predicted is by coordinates and sites; Known says whether there are any.
	Predicted time.Duration
	Known     bool
	At        vivaldi.Coordinate
}

// Links returns all that is known, by node.
func (v *Vicinity) Links() []Link {
	now := v.clock()
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]Link, 0, len(v.peers))
	for id, p := range v.peers {
		l := Link{Node: id, Smoothed: p.smoothed, Samples: p.samples, Known: p.placed, At: p.at}
		if p.samples > 0 {
			l.Age = now - p.last
			l.Least, l.Count = p.window(now)
		}
		if p.placed {
			l.Predicted = v.predict(p)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Link) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// window returns the least sample of the last five to ten minutes and their
// number.
func (p *peer) window(now time.Duration) (least time.Duration, count int) {
	for i := range p.least {
		if p.least[i] > 0 && now-p.turned < time.Duration(2-i)*windowHalf {
			if least == 0 || p.least[i] < least {
				least = p.least[i]
			}
			count += p.counts[i]
		}
	}
	return least, count
}

// ForWire is a coordinate of this process's space as frames carry it.
func ForWire(c vivaldi.Coordinate) wire.Coordinate {
	return wire.Coordinate{Vector: c.Vector, Height: c.Height, Error: c.Error, Dimensions: max(vivaldi.Default().Dimensions, c.Dimensions())}
}

func ofWire(c wire.Coordinate) vivaldi.Coordinate {
	return vivaldi.Coordinate{Vector: c.Vector, Height: c.Height, Error: c.Error}
}

// ForRow is a coordinate as a node's row carries it.
func ForRow(c vivaldi.Coordinate) geoconfig.Coordinate {
	vector, height, relative := c.Parts(max(c.Dimensions(), vivaldi.Default().Dimensions))
	return geoconfig.Coordinate{Vector: vector, Height: height, Error: relative}
}

// ofRow reads a row's coordinate; false: none was published yet, or nonsense.
func ofRow(at geoconfig.Coordinate) (vivaldi.Coordinate, bool) {
	if len(at.Vector) == 0 {
		return vivaldi.Coordinate{}, false
	}
	c, err := vivaldi.Place(at.Vector, at.Height, at.Error)
	return c, err == nil
}
