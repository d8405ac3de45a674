package proximity

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/vivaldi"
)

// A coordinate's height is the way from a node to the core of the network. The
// nodes of a site share that way and do not go it between each other, which no
// coordinate can say: where the sites are all as far from each other, it is all
// height, and the nodes of one site would be predicted as far apart as sites.

const (
	// fellow is what is predicted at most between two nodes of one site.
	fellow = time.Millisecond
	// astray is the measured round trip from which a node is elsewhere, whatever
	// is said of it.
	astray = 10 * time.Millisecond
)

// Here says at which site this process stands.
func (v *Vicinity) Here(site ids.Site) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.site = site
}

// Declare takes in what a node's row says: its site, and the nodes of that site
// that it measured to be elsewhere.
func (v *Vicinity) Declare(id ids.Node, site ids.Site, apart []ids.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.find(id)
	p.site, p.apart = site, slices.Clone(apart)
}

// predict is how far a peer is from here, by coordinates and sites.
func (v *Vicinity) predict(p *peer) time.Duration {
	here := v.self.Coordinate()
	return between(here, p.at, v.site != "" && v.site == p.site && p.smoothed < astray)
}

// predictOthers is how far two peers are from each other.
func (v *Vicinity) predictOthers(a ids.Node, p *peer, b ids.Node, q *peer) time.Duration {
	return between(p.at, q.at, p.site != "" && p.site == q.site && !slices.Contains(p.apart, b) && !slices.Contains(q.apart, a))
}

// Predict says how far two nodes are from each other, by what their rows say. It
// is false where a row has no valid coordinate.
func Predict(a, b geoconfig.Node) (time.Duration, bool) {
	at, errA := vivaldi.Place(a.Coordinate.Vector, a.Coordinate.Height, a.Coordinate.Error)
	to, errB := vivaldi.Place(b.Coordinate.Vector, b.Coordinate.Height, b.Coordinate.Error)
	if errA != nil || errB != nil || len(a.Coordinate.Vector) == 0 || len(b.Coordinate.Vector) == 0 {
		return 0, false
	}
	oneSite := a.Site == b.Site && !slices.Contains(a.Apart, b.ID) && !slices.Contains(b.Apart, a.ID)
	return between(at, to, oneSite), true
}

// between predicts a round trip. Nodes that are said to be of one site are
// believed to be where what parts them is mostly their heights.
func between(a, b vivaldi.Coordinate, oneSite bool) time.Duration {
	d := a.Predict(b)
	heights := float64(a.Height) + float64(b.Height)
	if oneSite && a.Distance(b) <= 2*heights {
		return min(d, fellow)
	}
	return d
}
