package survey

import (
	"cmp"
	"slices"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// far stands for a distance that is not known.
const far = time.Hour

// Distance predicts the round trip between two nodes, as far as this one knows.
func (s *Surveyor) Distance(a, b ids.Node) (time.Duration, bool) {
	switch s.o.Self {
	case a:
		e, ok := s.o.Vicinity.Estimate(b)
		return e.RTT, ok
	case b:
		e, ok := s.o.Vicinity.Estimate(a)
		return e.RTT, ok
	}
	return s.o.Vicinity.Between(a, b)
}

// Relays lists the nodes over which another one may be reached, the least
// round trip in all first.
func (s *Surveyor) Relays(to string) []string {
	type relay struct {
		id  string
		rtt time.Duration
	}
	var all []relay
	for _, n := range s.o.Roster.Nodes() {
		if n.ID == s.o.Self || string(n.ID) == to {
			continue
		}
		near, ok := s.Distance(s.o.Self, n.ID)
		on, ok2 := s.Distance(n.ID, ids.Node(to))
		if !ok || !ok2 {
			near, on = far, 0
		}
		all = append(all, relay{string(n.ID), near + on})
	}
	slices.SortFunc(all, func(a, b relay) int { return cmp.Or(cmp.Compare(a.rtt, b.rtt), cmp.Compare(a.id, b.id)) })
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].id
	}
	return out
}
