package whatif

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Latency is what operations wait for at one site, in round trips that are
// counted in docs/architecture.md. Queues, disks and bytes on thin lines come on
// top of it.
type Latency struct {
	// Read is the first read of a small file, and any operation that only
	// looks: one round trip to the active.
	Read time.Duration `json:"read_ns"`
	// Content is how far the nearest whole copy of a large file is.
	Content time.Duration `json:"content_ns"`
	// Write is a create, an fsync, or a close with changes: one round trip to
	// the active, and one from there to the farthest standby.
	Write time.Duration `json:"write_ns"`
}

// Latencies sums up the slices that serve a site.
type Latencies struct {
	// Slices is how many could be predicted.
	Slices int     `json:"slices"`
	Median Latency `json:"median"`
	Worst  Latency `json:"worst"`
}

// latency predicts what users of a site wait for in a slice. It is false where
// the slice does not serve, or a distance is not known.
func (c *cluster) latency(site ids.Site, row *Slice) (Latency, bool) {
	if !c.stands(row).serves() {
		return Latency{}, false
	}
	toActive, ok := c.fromSite(site, row.Active)
	if !ok {
		return Latency{}, false
	}
	l := Latency{Read: toActive, Content: toActive}
	var farthest time.Duration
	for _, m := range row.Members {
		if m.State != geoconfig.Normal || m.Node == row.Active {
			continue
		}
		rtt, ok := c.distances.between(row.Active, m.Node)
		if !ok {
			return Latency{}, false
		}
		farthest = max(farthest, rtt)
		if near, ok := c.fromSite(site, m.Node); ok {
			l.Content = min(l.Content, near)
		}
	}
	l.Write = toActive + farthest
	return l, true
}

// way names the way from the users of a site to a node.
type way struct {
	from ids.Site
	to   ids.Node
}

// fromSite is how far a node is from the users of a site, who are taken to be
// beside the nearest of the site's nodes that answers.
func (c *cluster) fromSite(site ids.Site, to ids.Node) (time.Duration, bool) {
	w := way{site, to}
	if rtt, ok := c.ways[w]; ok {
		return rtt, rtt >= 0
	}
	best := time.Duration(-1)
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.Site != site || n.Away {
			continue
		}
		if rtt, ok := c.distances.between(n.ID, to); ok && (best < 0 || rtt < best) {
			best = rtt
		}
	}
	c.ways[w] = best
	return best, best >= 0
}

// latencies sums up what users of a site wait for in the slices that a function
// chooses.
func (c *cluster) latencies(site ids.Site, chosen func(*Slice) bool) Latencies {
	var all []Latency
	for i := range c.slices {
		if row := &c.slices[i]; chosen(row) {
			if l, ok := c.latency(site, row); ok {
				all = append(all, l)
			}
		}
	}
	return sum(all)
}

func sum(all []Latency) Latencies {
	out := Latencies{Slices: len(all)}
	if len(all) == 0 {
		return out
	}
	one := func(part func(Latency) time.Duration) (median, worst time.Duration) {
		values := make([]time.Duration, len(all))
		for i, l := range all {
			values[i] = part(l)
		}
		slices.Sort(values)
		return values[(len(values)-1)/2], values[len(values)-1]
	}
	out.Median.Read, out.Worst.Read = one(func(l Latency) time.Duration { return l.Read })
	out.Median.Content, out.Worst.Content = one(func(l Latency) time.Duration { return l.Content })
	out.Median.Write, out.Worst.Write = one(func(l Latency) time.Duration { return l.Write })
	return out
}
