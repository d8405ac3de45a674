package replicatest

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// sim is the time, the chance and the network that all parts of a World share.
type sim struct {
	o      Options
	rng    *rand.Rand
	now    Time
	events eventHeap
	count  uint64
	calm   bool // no more faults

	cut    map[[2]int]Time // one-way links that are cut, until when
	far    map[int]Time    // by number: more than others' messages take, each way
	delays int             // longest ordinary delay, in microseconds
}

func newSim(o Options) *sim {
	return &sim{o: o, rng: rand.New(rand.NewPCG(o.Seed, 7)), now: time.Hour, cut: map[[2]int]Time{}, far: map[int]Time{}, delays: 3000}
}

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

func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

func (s *sim) after(d Time, do func()) {
	s.count++
	heap.Push(&s.events, event{s.now + max(d, 0), s.count, do})
}

// run runs until a time has passed, with a look after each event.
func (s *sim) run(d Time, look func()) {
	end := s.now + d
	for len(s.events) > 0 && s.events[0].at <= end {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
		look()
	}
	s.now = end
}

// between returns a random duration.
func (s *sim) between(a, b Time) Time {
	if b <= a {
		return a
	}
	return a + Time(s.rng.Int64N(int64(b-a)))
}

func (s *sim) chance(perMille int) bool { return s.rng.IntN(1000) < perMille }

func (s *sim) trace(format string, args ...any) {
	if s.o.Trace != nil {
		s.o.Trace("%9.3f "+format, append([]any{(s.now - time.Hour).Seconds()}, args...)...)
	}
}

// pass says how long a message takes from one machine to another, or that it
// does not arrive. Clients have numbers from 100 on, geo-config has 99.
func (s *sim) pass(from, to int) (Time, bool) {
	if until, cut := s.cut[[2]int{from, to}]; cut {
		if s.now < until {
			return 0, false
		}
		delete(s.cut, [2]int{from, to})
	}
	d := 200*time.Microsecond + Time(s.rng.IntN(s.delays))*time.Microsecond + s.far[from] + s.far[to]
	if s.calm {
		return d, true
	}
	if s.chance(s.o.Loss) {
		return 0, false
	}
	if s.chance(s.o.Late) {
		d += s.between(0, s.o.LateBy) // and so after others
	}
	return d, true
}
