// Package link decides what happens to packets between sites, and when: it
// takes packets with the time they came, and gives them back with the time they
// are due. It is a step machine: no clock, no I/O, no goroutine; times are
// nanoseconds that the caller counts, and chance comes from a seed, so that the
// same packets meet the same fate. It is not safe for use by several
// goroutines, and keeps no packet: it speaks of them by number.
//
// A packet waits in its site's uplink, then in the queue of its pair of sites,
// is lost or under way for the path's delay, and then waits in the downlink of
// the site it goes to. When a packet leaves a queue is known when it enters,
// as long as rates do not change; when they do, those that wait are moved.
package link

// Params is the path from one site to another. Times are nanoseconds.
type Params struct {
	Delay, Jitter int64
	Rate          int64 // bits per second; 0 is unlimited
	Queue         int64 // bytes
	Loss          float64
	Burst         float64 // mean number of packets lost in a row; up to 1 is independent
	Duplicate     float64
	Reorder       float64
	ReorderBy     int64
	Corrupt       float64
	Garble        float64
	Cut           bool
}

// Side is a site's links to the WAN.
type Side struct {
	Up, Down           int64 // bits per second; 0 is unlimited
	UpQueue, DownQueue int64 // bytes
	Off                bool
	Blackouts          []Blackout
}

// Blackout turns a site off for For of every Every from From on.
type Blackout struct{ Every, For, From int64 }

// State is everything that may change. It is not changed once it was given to
// a Net.
type State struct {
	Sides []Side
	Pairs []Params // by From*len(Sides)+To
}

// Fate says why a packet did not arrive, or that it did.
type Fate uint8

// The fates. A caller that finds nothing for a packet counts its own.
const (
	Arrived Fate = iota
	Lost
	QueueFull
	UplinkFull
	DownlinkFull
	Cut
	Off
	fates
)

// Packet is what comes in: one or several segments of one packet, that meet
// the same fate.
type Packet struct {
	From, To int
	Bytes    int
	Segments int
	Ref      uint32 // the caller's
}

// Out is a packet that is due, or is dropped late.
type Out struct {
	Ref     uint32
	To      int
	At      int64 // when it was due
	Fate    Fate  // Arrived, or why not
	Corrupt bool  // one bit of it is to be flipped
	Garble  bool  // one bit of its payload, with its checksum made right
	Chance  uint32
}

// Counters counts segments of a pair.
type Counters struct {
	Packets, Bytes     uint64
	Delivered, Through uint64 // segments and bytes that arrived
	Fates              [fates]uint64
	Doubled, Reordered uint64
	Corrupted, Garbled uint64
	_                  struct{}
}

// queue is a link with a rate: busy is when it will have sent all it holds.
type queue struct{ busy int64 }

// pair is a path's own state.
type pair struct {
	queue
	last     int64 // when the last packet that keeps its place arrives
	random   random
	bursting bool // in a run of losses
}

// side is a site's own state.
type side struct {
	up, down queue
	offAt    int64 // when Off was set
}

// flight is a packet that the Net holds.
type flight struct {
	Packet
	order            int64 // of coming in
	came             int64
	upStart, upEnd   int64 // when the uplink sends it
	start, end       int64 // when the pair's queue does
	after            int64 // from end to its arrival at the other side: delay, jitter, holding back
	held             bool  // keeps no place in the order
	arrived          bool  // waits in the downlink, or is due
	corrupt, garbled bool
	chance           uint32
}

// Net is the state of all links.
type Net struct {
	n       int
	seed    uint64
	state   *State
	pairs   []pair
	sides   []side
	flights []flight
	free    []uint32
	heap    heap
	order   int64
	counts  []Counters
}

// room is for how many packets a Net has room before it has to grow.
const room = 1 << 15

// New returns a Net of as many sites as the state has.
func New(seed uint64, s *State) *Net {
	n := len(s.Sides)
	l := &Net{
		n: n, seed: seed, state: s, pairs: make([]pair, n*n), sides: make([]side, n), counts: make([]Counters, n*n),
		flights: make([]flight, 0, room), free: make([]uint32, 0, room), heap: make(heap, 0, room),
	}
	for i := range l.pairs {
		l.pairs[i].random = random(mix(seed, uint64(i)))
	}
	return l
}

// Counts returns the counters by From*sites+To. They go on counting.
func (l *Net) Counts() []Counters { return l.counts }

// Holds returns how many packets are held.
func (l *Net) Holds() int { return len(l.heap) }

// Whole returns how many bytes of a packet of several segments may be handed in
// as one: 0 means one segment at a time. Chance is drawn for each, and a packet
// that takes long to send would hold up others.
func (l *Net) Whole(from, to int) int {
	p := &l.state.Pairs[from*l.n+to]
	if p.Loss > 0 || p.Duplicate > 0 || p.Reorder > 0 || p.Corrupt > 0 || p.Garble > 0 {
		return 0
	}
	slowest := int64(0)
	for _, r := range [...]int64{p.Rate, l.state.Sides[from].Up, l.state.Sides[to].Down} {
		if r > 0 && (slowest == 0 || r < slowest) {
			slowest = r
		}
	}
	if slowest == 0 {
		return wholeMost
	}
	return int(min(slowest*wholeTime/8e9, wholeMost))
}

const (
	wholeTime = 500_000 // ns that sending a packet of several segments may take
	wholeMost = 1 << 16
)

// Admit takes a packet and returns how many copies of it will come out: none if
// it is dropped at once.
func (l *Net) Admit(now int64, p Packet) (copies int) {
	at := p.From*l.n + p.To
	c, path, pr := &l.counts[at], &l.state.Pairs[at], &l.pairs[at]
	c.Packets += uint64(p.Segments)
	c.Bytes += uint64(p.Bytes)
	f := flight{Packet: p, came: now, order: l.order}
	l.order++
	if fate := l.enter(now, &f, path, pr); fate != Arrived {
		c.Fates[fate] += uint64(p.Segments)
		return 0
	}
	if path.Corrupt > 0 && pr.random.below(path.Corrupt) {
		f.corrupt, f.chance = true, uint32(pr.random.next())
		c.Corrupted++
	} else if path.Garble > 0 && pr.random.below(path.Garble) {
		f.garbled, f.chance = true, uint32(pr.random.next())
		c.Garbled++
	}
	f.after = path.Delay + l.jitter(at, path, f.end)
	if path.Reorder > 0 && pr.random.below(path.Reorder) {
		f.held = true
		f.after += path.ReorderBy
		c.Reordered++
	}
	twice := path.Duplicate > 0 && pr.random.below(path.Duplicate)
	l.hold(f, pr)
	if twice {
		c.Doubled++
		f.order = l.order
		l.order++
		l.hold(f, pr)
		return 2
	}
	return 1
}

// enter puts a packet through the two queues on its side.
func (l *Net) enter(now int64, f *flight, path *Params, pr *pair) Fate {
	if l.off(f.From, now) {
		return Off
	}
	if path.Cut {
		return Cut
	}
	from := &l.state.Sides[f.From]
	up := &l.sides[f.From].up
	if !up.fits(now, from.Up, from.UpQueue, f.Bytes) {
		return UplinkFull
	}
	f.upStart, f.upEnd = up.send(now, from.Up, f.Bytes, 1)
	if !pr.fits(f.upEnd, path.Rate, path.Queue, f.Bytes) {
		return QueueFull
	}
	f.start, f.end = pr.send(f.upEnd, path.Rate, f.Bytes, 1)
	if path.Loss > 0 && pr.lose(path) {
		return Lost
	}
	return Arrived
}

// lose draws whether a packet is lost: each by itself, or in runs of a mean
// length after which as many come through as the share asks for (Gilbert's
// model, with everything lost in its bad state).
func (p *pair) lose(path *Params) bool {
	if path.Burst <= 1 || path.Loss >= 1 {
		return p.random.below(path.Loss)
	}
	if p.bursting {
		p.bursting = !p.random.below(1 / path.Burst)
	} else {
		p.bursting = p.random.below(path.Loss / (path.Burst * (1 - path.Loss)))
	}
	return p.bursting
}

// fits reports whether a queue takes another packet. An idle link takes any.
func (q *queue) fits(at, rate, limit int64, bytes int) bool {
	if rate == 0 || q.busy <= at {
		return true
	}
	waiting := float64(q.busy-at) * float64(rate) / 8e9
	return waiting+float64(bytes) <= float64(limit)
}

// send returns when a packet, or the part of it that is left, begins and ends
// to be sent.
func (q *queue) send(at, rate int64, bytes int, part float64) (start, end int64) {
	start = max(at, q.busy)
	end = start
	if rate > 0 {
		end += int64(part*float64(bytes)*8e9/float64(rate) + 0.5)
	}
	q.busy = end
	return start, end
}

// hold schedules a packet's arrival at the other side.
func (l *Net) hold(f flight, pr *pair) {
	t := f.end + f.after
	if !f.held {
		t = max(t, pr.last)
		pr.last = t
	}
	var i uint32
	if n := len(l.free); n > 0 {
		i = l.free[n-1]
		l.free = l.free[:n-1]
		l.flights[i] = f
	} else {
		i = uint32(len(l.flights))
		l.flights = append(l.flights, f)
	}
	l.heap.push(event{t, f.order, i})
}

// Next returns when the next packet is due to be looked at, if any is held.
func (l *Net) Next() (at int64, ok bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].at, true
}

// Pop returns the next packet that is due by now, or dropped by then.
func (l *Net) Pop(now int64) (Out, bool) {
	for len(l.heap) > 0 && l.heap[0].at <= now {
		e := l.heap[0]
		f := &l.flights[e.flight]
		if !f.arrived {
			if l.arrive(e, f) {
				continue // it waits for the downlink
			}
		}
		l.heap.pop()
		return l.finish(e, f), true
	}
	return Out{}, false
}

// arrive moves a packet from the path to the downlink, and reports whether it
// has to wait there. One that is dropped does not arrive.
func (l *Net) arrive(e event, f *flight) (waits bool) {
	if l.off(f.From, f.upEnd) || l.off(f.To, e.at) {
		return false
	}
	to := &l.state.Sides[f.To]
	f.arrived = true
	if to.Down == 0 {
		return false
	}
	down := &l.sides[f.To].down
	if !down.fits(e.at, to.Down, to.DownQueue, f.Bytes) {
		f.arrived = false
		return false
	}
	f.start, f.end = down.send(e.at, to.Down, f.Bytes, 1)
	l.heap[0].at = f.end
	l.heap.down(0)
	return true
}

func (l *Net) finish(e event, f *flight) Out {
	c := &l.counts[f.From*l.n+f.To]
	o := Out{Ref: f.Ref, To: f.To, At: e.at, Corrupt: f.corrupt, Garble: f.garbled, Chance: f.chance}
	switch {
	case f.arrived:
		c.Delivered += uint64(f.Segments)
		c.Through += uint64(f.Bytes)
	case l.off(f.From, f.upEnd) || l.off(f.To, e.at):
		o.Fate = Off
	default:
		o.Fate = DownlinkFull
	}
	if o.Fate != Arrived {
		c.Fates[o.Fate] += uint64(f.Segments)
	}
	l.free = append(l.free, e.flight)
	return o
}

// off reports whether a site is off at a time.
func (l *Net) off(site int, at int64) bool {
	s := &l.state.Sides[site]
	if s.Off && at >= l.sides[site].offAt {
		return true
	}
	for _, b := range s.Blackouts {
		if at >= b.From && (at-b.From)%b.Every < b.For {
			return true
		}
	}
	return false
}
