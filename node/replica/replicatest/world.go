package replicatest

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// Time is virtual: what a perfect clock would show.
type Time = time.Duration

// Lease is the simulated lease; shorter than a real one, so that more happens.
const Lease = 300 * time.Millisecond

const tickEvery = 15 * time.Millisecond

// Options shape a World.
type Options struct {
	Seed    uint64
	Nodes   int // machines; those beyond Level are spare
	Level   int
	Members int // of the slice at first; 0 is Level
	Clients int
	Flight  int  // operations that each has under way at once, 1 if 0
	Faults  Time // how long faults and load go on
	// LevelTwo is the share of writes, of 256, that ask for two replicas only.
	LevelTwo int
	Loss     int // messages of 1000 that are lost while faults go on
	// Slow messages come late by up to SlowBy, SlowShare of 1000 of them.
	Slow      replica.MessageKind
	SlowShare int
	SlowBy    Time
	// Late is how many messages of 1000 come late, by up to LateBy.
	Late   int
	LateBy Time
	// CandidateCrashes is how many of 1000 candidates crash as soon as they have
	// sent their takeover's swap, 60 if 0.
	CandidateCrashes int
	// Moves is how many of 1000 faults, more than usual, change the members.
	Moves int
	// Lies is how many of 1000 faults make a disk lose what was synced, 80 if 0.
	Lies int
	// Keep is how many bytes of entries a core keeps in memory, 8 KiB if 0.
	Keep int
	// NoReads: drivers give nothing back from their journals, so that who
	// misses more than is in memory gets the state.
	NoReads bool
	Bugs    Bugs
	Trace   func(format string, args ...any)
}

// World is a simulated cluster with one slice.
type World struct {
	o      Options
	rng    *rand.Rand
	now    Time
	events eventHeap
	count  uint64

	machines []*machine
	byID     map[ids.Node]*machine
	config   config
	clients  []*client
	calm     bool // no more faults
	lied     bool // a disk has lost what was synced
	spared   Time // no other faults before

	cut    map[[2]int]Time // one-way links that are cut, until when
	delays int             // longest ordinary delay, in microseconds

	check checker
}

// Slice is the slice that the simulated cluster has.
const Slice ids.Slice = 1

type event struct {
	at    Time
	count uint64
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || (h[i].at == h[j].at && h[i].count < h[j].count)
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// New makes a cluster whose slice is on the first Level machines.
func New(o Options) *World {
	w := &World{o: o, rng: rand.New(rand.NewPCG(o.Seed, 7)), now: time.Hour, byID: map[ids.Node]*machine{}, cut: map[[2]int]Time{}, delays: 3000}
	if o.LateBy == 0 {
		w.o.Late, w.o.LateBy = 20, Lease
	}
	if o.CandidateCrashes == 0 {
		w.o.CandidateCrashes = 60
	}
	if o.Lies == 0 {
		w.o.Lies = 80
	}
	if o.Keep == 0 {
		w.o.Keep = 8 << 10
	}
	w.check.init(w)
	row := &geoconfig.SliceRow{ID: Slice, Epoch: 1, Policy: geoconfig.Policy{Level: o.Level, Kind: geoconfig.Ordinary}}
	for i := range o.Nodes {
		m := newMachine(w, i)
		w.machines = append(w.machines, m)
		w.byID[m.id] = m
		if i < max(o.Level, o.Members) {
			row.Members = append(row.Members, geoconfig.Member{Node: m.id, State: geoconfig.Normal, Incarnation: 1})
		}
	}
	row.Active = w.machines[0].id
	w.config.init(w, row)
	w.config.away = w.now + 1
	for _, m := range w.machines {
		m.start()
		m.learn(row)
	}
	for i := range o.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

func (w *World) after(d Time, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now + max(d, 0), w.count, do})
}

// Run runs until a time has passed.
func (w *World) Run(d Time) {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		w.check.oneLease()
	}
	w.now = end
}

// between returns a random duration.
func (w *World) between(a, b Time) Time {
	if b <= a {
		return a
	}
	return a + Time(w.rng.Int64N(int64(b-a)))
}

func (w *World) chance(perMille int) bool { return w.rng.IntN(1000) < perMille }

func (w *World) trace(format string, args ...any) {
	if w.o.Trace != nil {
		w.o.Trace("%9.3f "+format, append([]any{(w.now - time.Hour).Seconds()}, args...)...)
	}
}

// pass says how long a message takes from one machine to another, or that it
// does not arrive. Clients have numbers from 100 on, geo-config has 99.
func (w *World) pass(from, to int) (Time, bool) {
	if until, cut := w.cut[[2]int{from, to}]; cut {
		if w.now < until {
			return 0, false
		}
		delete(w.cut, [2]int{from, to})
	}
	d := 200*time.Microsecond + Time(w.rng.IntN(w.delays))*time.Microsecond + w.far(from) + w.far(to)
	if w.calm {
		return d, true
	}
	if w.chance(w.o.Loss) {
		return 0, false
	}
	if w.chance(w.o.Late) {
		d += w.between(0, w.o.LateBy) // and so after others
	}
	return d, true
}

// far returns what a number's machine adds to a message's way.
func (w *World) far(number int) Time {
	if number < len(w.machines) {
		return w.machines[number].far
	}
	return 0
}

// Send carries a core's message, encoded as it would be on a real wire.
func (w *World) send(from *machine, to ids.Node, m *replica.Message) {
	dest := w.byID[to]
	if dest == nil {
		return
	}
	times := 1
	if !w.calm && w.chance(15) {
		times = 2
	}
	bytes := replica.AppendMessage(nil, m)
	for range times {
		d, ok := w.pass(from.index, dest.index)
		if !ok {
			continue
		}
		if m.Kind == w.o.Slow && !w.calm && w.chance(w.o.SlowShare) {
			d += w.between(0, w.o.SlowBy)
		}
		w.after(d, func() { dest.deliver(from.id, bytes) })
	}
}

func nodeName(i int) ids.Node { return ids.Node(fmt.Sprintf("n%d", i)) }
