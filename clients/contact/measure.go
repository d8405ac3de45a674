package contact

import (
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/wire"
)

// locateEvery is how often the client tells the nodes a new coordinate.
const locateEvery = time.Second

// sample takes in a round trip that a call, an answer or a heartbeat measured.
func (c *Cluster) sample(peer string, rtt time.Duration, at *wire.Coordinate) {
	c.near.Sample(ids.Node(peer), rtt, at)
	now := int64(c.opt.Clock())
	if last := c.located.Load(); (last == 0 || now-last >= int64(locateEvery)) && c.located.CompareAndSwap(last, now) {
		c.host.SetCoordinate(proximity.ForWire(c.near.Coordinate()))
	}
}

// readsWide reports whether a node's row says that its program reads coordinates
// of more than two dimensions.
func (c *Cluster) readsWide(peer string) bool {
	row, ok := c.Node(ids.Node(peer))
	return ok && row.Feature >= version.WideCoordinates
}

const (
	// firstLook is how many nodes are measured at first, besides those of the
	// client's own site; lookAgain is the time between later ones.
	firstLook = 8
	lookAgain = 15 * time.Second
	lookLimit = 3 * time.Second
	// looksAtOnce bounds the measurements under way.
	looksAtOnce = 4
)

// survey measures the way to nodes that the client has nothing to ask, until
// Close: first those of its own site and some others, then one at a time, by
// turns near and random ones. It costs a round trip of two small packets each;
// no connection stays.
func (c *Cluster) survey() {
	var first []ids.Node
	for _, n := range c.Nodes() {
		if c.opt.Site != "" && n.Site == c.opt.Site {
			first = append(first, n.ID)
		}
	}
	for range firstLook {
		if id, ok := c.near.Next(); ok && !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	for _, n := range c.Nodes() { // who published nothing yet is nobody's neighbour
		if len(first) < firstLook && !slices.Contains(first, n.ID) {
			first = append(first, n.ID)
		}
	}
	var all sync.WaitGroup
	flight := make(chan struct{}, looksAtOnce)
	for _, id := range first {
		flight <- struct{}{}
		all.Go(func() {
			defer func() { <-flight }()
			c.look(id)
		})
	}
	all.Wait()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		if id, ok := c.near.Next(); ok {
			c.look(id)
		}
	}
}

// look measures the way to one node, unless its connection does that.
func (c *Cluster) look(id ids.Node) {
	if _, up := c.host.Path(string(id)); up {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, lookLimit)
	defer cancel()
	if rtt, err := c.host.Probe(ctx, string(id)); err == nil {
		c.near.Sample(id, rtt, nil)
	}
}
