package simulation

import (
	"time"
)

// harm is something that goes wrong for a while.
type harm struct {
	about  string
	length time.Duration
	begin  func() // nil: it makes no sense now
	lift   func()
}

// faults make something go wrong in a run, again and again.
type faults struct {
	*cluster
	clients []*client
	seen    map[Kind]int // so many were there
	spoilt  *machine     // the one whose disk loses what it had
	resizes int          // so many slices got another level
}

// between lists the ways of a host with the nodes, and with the clients.
func (f *faults) between(h *host, out, in, clients bool) (ways []way) {
	for _, other := range f.net.hosts {
		if other == h || !clients && other.client {
			continue
		}
		if out {
			ways = append(ways, way{h, other})
		}
		if in {
			ways = append(ways, way{other, h})
		}
	}
	return ways
}

// cut is the fault that nothing passes some ways.
func (f *faults) cut(about string, length time.Duration, ways []way) harm {
	return f.changed(about, length, ways, func(s *state) { s.cut++ }, func(s *state) { s.cut-- })
}

// changed is the fault that some ways are not as they were.
func (f *faults) changed(about string, length time.Duration, ways []way, on, off func(*state)) harm {
	return harm{about: about, length: length, begin: func() { f.net.change(ways, on) }, lift: func() { f.net.change(ways, off) }}
}
