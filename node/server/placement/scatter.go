package placement

import (
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// ScatterWidth is with how many other nodes a node shares slices, where placement has
// a choice. Two nodes that share slices send each other beacons all the time, and each
// set of nodes that share a slice is one whose loss at once loses data: without a bound
// both grow with the square of the cluster. With fewer, less nodes help to make the
// copies of a lost one anew (BeanFS's section 6; Copysets, 2013).
const ScatterWidth = 16

// sharing knows which nodes have slices in common. It counts when it is first asked,
// since most decisions do not ask. It is safe for concurrent use.
type sharing struct {
	rows  []geoconfig.SliceRow
	width int

	once sync.Once
	with map[ids.Node]map[ids.Node]bool // the fellows of each node
}

// strangers counts the members with which a node would share its first slice although
// it has its fill of fellows, or that member has.
func (s *sharing) strangers(id ids.Node, members map[ids.Node]bool) int {
	if s == nil {
		return 0
	}
	s.once.Do(s.count)
	n := 0
	for m, in := range members {
		if in && m != id && !s.with[id][m] && max(len(s.with[id]), len(s.with[m])) >= s.width {
			n++
		}
	}
	return n
}

func (s *sharing) count() {
	s.with = map[ids.Node]map[ids.Node]bool{}
	for i := range s.rows {
		for _, a := range s.rows[i].Members {
			of := s.with[a.Node]
			if of == nil {
				of = map[ids.Node]bool{}
				s.with[a.Node] = of
			}
			for _, b := range s.rows[i].Members {
				if b.Node != a.Node {
					of[b.Node] = true
				}
			}
		}
	}
}
