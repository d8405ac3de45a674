package whatif

import (
	"cmp"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/vivaldi"
)

// pair names a way in one direction.
type pair struct{ from, to ids.Node }

// distances tells how far nodes are from each other: as measured, as said of an
// added site, or as coordinates predict, in this order.
type distances struct {
	measured map[pair]time.Duration
	rows     map[ids.Node]geoconfig.Node
	// added has the round trips of sites that were added, by site and other
	// site, and placed the coordinates that these gave.
	added  map[ids.Site]map[ids.Site]time.Duration
	placed map[ids.Site]geoconfig.Coordinate
}

func newDistances(s *State) *distances {
	d := &distances{
		measured: map[pair]time.Duration{}, rows: map[ids.Node]geoconfig.Node{},
		added: map[ids.Site]map[ids.Site]time.Duration{}, placed: map[ids.Site]geoconfig.Coordinate{},
	}
	for _, m := range s.Measured {
		if m.RTT > 0 {
			d.measured[pair{m.From, m.To}] = m.RTT
		}
	}
	return d
}

func (d *distances) addNode(n geoconfig.Node) {
	if c, ok := d.placed[n.Site]; ok && len(n.Coordinate.Vector) == 0 {
		n.Coordinate = c
	}
	d.rows[n.ID] = n
}

// between is a placement.Distance.
func (d *distances) between(a, b ids.Node) (time.Duration, bool) {
	if a == b {
		return 0, true
	}
	if rtt, ok := d.measured[pair{a, b}]; ok {
		return rtt, true
	}
	if rtt, ok := d.measured[pair{b, a}]; ok {
		return rtt, true
	}
	at, to := d.rows[a], d.rows[b]
	if rtt, ok := d.added[at.Site][to.Site]; ok {
		return rtt, true
	}
	if rtt, ok := d.added[to.Site][at.Site]; ok {
		return rtt, true
	}
	return proximity.Predict(at, to)
}

// rounds is how many samples of each round trip place an added site. Vivaldi
// needs some tens to settle (docs/coordinates.md).
const rounds = 100

// addSite takes in a site's round trips to others, and finds the coordinate that
// fits them best among the coordinates of the nodes there.
func (d *distances) addSite(site ids.Site, rtt map[ids.Site]time.Duration, nodes []Node) {
	d.added[site] = rtt
	at, err := vivaldi.NewNode(vivaldi.Default(), new(sequence))
	if err != nil {
		return // the default is valid
	}
	var known []geoconfig.Node
	for _, n := range nodes {
		if rtt[n.Site] > 0 && len(n.Coordinate.Vector) > 0 {
			known = append(known, n.Node)
		}
	}
	slices.SortFunc(known, func(a, b geoconfig.Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := range rounds {
		for _, n := range known {
			if c, err := vivaldi.Place(n.Coordinate.Vector, n.Coordinate.Height, n.Coordinate.Error); err == nil {
				at.Observe(string(n.ID), rtt[n.Site], c, time.Duration(i)*time.Second)
			}
		}
	}
	if len(known) > 0 {
		d.placed[site] = proximity.ForRow(at.Coordinate())
	}
}

// sequence is a vivaldi.Source that gives the same numbers each time, so that
// equal states have equal outcomes (the steps of SplitMix64).
type sequence uint64

func (s *sequence) Uint64() uint64 {
	*s += 0x9e3779b97f4a7c15
	x := uint64(*s)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
