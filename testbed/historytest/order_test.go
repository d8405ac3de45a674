package historytest

import (
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
)

// namespace is the naive twin of order: an operation of unknown outcome takes
// effect where it can, and one that never did has its place at the end.
var namespace = porcupine.Model{
	Init: func() any { return cells{} },
	Step: step(func(state any, e *event) (bool, any) {
		s := state.(cells)
		ok := e.names(&s)
		return ok, s
	}),
}

// fitsTwin has the twin try all that creations of unknown outcome may have made.
func fitsTwin(events []*event, strange []sighting, fresh uint64) bool {
	for _, e := range events {
		if e.what != create || e.result != unknown || e.ino != 0 {
			continue
		}
		for i := -1; i < len(strange); i++ {
			if e.ino = fresh; i >= 0 {
				e.ino = strange[i].ino
			}
			rest := append([]sighting{}, strange[:max(i, 0)]...)
			rest = append(rest, strange[i+1:]...)
			fits := fitsTwin(events, rest, fresh+1)
			if e.ino = 0; fits {
				return true
			}
		}
		return false
	}
	result, _ := search(namespace, events, mostSteps)
	return result == porcupine.Ok
}

// drawn draws an operation on a few names, and does it.
func drawn(r *rand.Rand, s *cells, inos []uint64) event {
	e := event{object: namesObject, what: create + what(r.IntN(int(batch-create)+1)), at: r.IntN(3), to: r.IntN(3)}
	switch e.what {
	case batch:
		for range 1 + r.IntN(2) {
			if p := drawn(r, s, inos); p.what == unlink || p.what == rename || p.what == link {
				e.parts = append(e.parts, &p)
			} else {
				p = event{object: namesObject, what: unlink, at: 3, result: missing}
				e.parts = append(e.parts, &p)
			}
		}
	case create:
		e.ino = 100 + r.Uint64N(1<<20)
	case link:
		e.ino = inos[r.IntN(len(inos))]
	case lookup:
		e.ino = s[e.at]
	case list:
		e.at = 0
		e.cells[0], e.cells[1] = s[0], s[1]
	}
	for e.result = done; e.what != batch; e.result++ {
		if e.result == exists && e.what != create && e.what != link {
			continue // only these are told so
		}
		if after := *s; e.names(&after) {
			*s = after
			break
		}
	}
	return e
}

// aHistory draws operations beside each other. Half of the histories have one whose
// outcome is another than it was.
func aHistory(r *rand.Rand) (events []*event) {
	var s cells
	inos := []uint64{7}
	for i := range 11 {
		before := s
		e := drawn(r, &s, inos)
		if e.ino != 0 {
			inos = append(inos, e.ino)
		}
		call, ret := int64(100+10*i-r.IntN(30)), int64(100+10*i+r.IntN(30))
		if (e.what == create || e.what == unlink || e.what == rename || e.what == link) && r.IntN(2) == 0 {
			e.result, ret = unknown, never
			if r.IntN(2) == 0 {
				s = before
			}
			if e.what == create && r.IntN(2) == 0 {
				e.ino = 0
			}
		}
		events = append(events, at(call, ret, e))
	}
	if e := events[r.IntN(len(events))]; r.IntN(2) == 0 && e.result != unknown && e.what != batch {
		if e.what == lookup {
			e.ino = inos[r.IntN(len(inos))]
		} else if e.result != exists && e.what != list && e.what != create {
			e.result = done + missing - e.result
		}
	}
	return events
}

func TestOrder_EqualsASearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	good := 0
	const rounds = 20_000
	for range rounds {
		h := aHistory(r)
		want := fitsTwin(h, strangers(h), 1<<30)
		got := newOrder(h, mostWays).find()
		if got == porcupine.Unknown || (got == porcupine.Ok) != want {
			t.Fatalf("got %v, and the twin says that it fits: %v; of %v", got, want, h)
		}
		if want {
			good++
		}
	}
	t.Logf("%d of %d histories are good", good, rounds)
	if good < rounds/10 || good > rounds*9/10 {
		t.Errorf("%d of %d histories are good: they say little", good, rounds)
	}
}

// TestOrder_IsFoundBesideManyOfUnknownOutcome has very many operations of unknown
// outcome, of which the others need two.
func TestOrder_IsFoundBesideManyOfUnknownOutcome(t *testing.T) {
	var h []*event
	add := func(e event) {
		e.object = namesObject
		h = append(h, at(int64(10*len(h)), int64(10*len(h)+5), e))
	}
	for i := range 200 {
		cell := i % (dirs * namesEach)
		add(event{what: unlink, at: cell, result: missing})
		h = append(h, at(int64(10*len(h)), never, event{object: namesObject, what: create, at: cell, ino: uint64(1000 + i)}),
			at(int64(10*len(h)), never, event{object: namesObject, what: rename, at: cell, to: (cell + 3) % (dirs * namesEach)}))
		add(event{what: lookup, at: cell})
	}
	add(event{what: lookup, at: 3, ino: 1080}) // it was made at the first name, and moved
	if got := newOrder(h, 10*len(h)).find(); got != porcupine.Ok {
		t.Errorf("got %v within %d ways, want an order", got, 10*len(h))
	}
	add(event{what: lookup, at: 0, ino: 1080})
	h[len(h)-1].at = 6
	if got := newOrder(h, 3).find(); got != porcupine.Unknown {
		t.Errorf("got %v within three ways, want that nothing is known", got)
	}
}
