package contact

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
)

const (
	// settleLimit bounds the measurements before a choice that lasts. It is only
	// reached where neither of two nodes answers.
	settleLimit = time.Second
	// settledFor is for how long a measurement is as good as a new one.
	settledFor = 30 * time.Second
)

// Settle measures the first two of some nodes, the nearest first, and puts the
// nearer of them first. It is for a choice that lasts: coordinates miss the nearest
// now and then, and two measurements seldom do (docs/coordinates.md). Both begin at
// once, and the first answer decides, so a node that is dead costs no more time
// than one that is alive. Nodes within a millisecond or a tenth of each other stay
// as they are, and so do two that do not answer. It returns when ctx ends.
func (c *Cluster) Settle(ctx context.Context, nodes []ids.Node) {
	if len(nodes) < 2 {
		return
	}
	first, known := c.lately(nodes[0])
	second, both := c.lately(nodes[1])
	switch {
	case known && first == 0:
		return
	case known && both:
		if second < first-max(slack, first/slackShare) {
			nodes[0], nodes[1] = nodes[1], nodes[0]
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	var answered [2]bool
	var all sync.WaitGroup
	for i := range answered {
		all.Go(func() {
			began := c.opt.Clock()
			if answered[i] = c.reach(ctx, nodes[i]); !answered[i] {
				return
			}
			if i == 1 { // the other one may be as near
				Pause(ctx, max(slack, (c.opt.Clock()-began)/slackShare))
			}
			cancel()
		})
	}
	all.Wait()
	if answered[1] && !answered[0] {
		nodes[0], nodes[1] = nodes[1], nodes[0]
	}
}

// lately returns the round trip to a node that was measured a short time ago; 0:
// the node is on this machine.
func (c *Cluster) lately(id ids.Node) (time.Duration, bool) {
	if c.distance(id).How == Local {
		return 0, true
	}
	e, ok := c.near.Estimate(id)
	return e.RTT, ok && e.Measured && e.Age <= settledFor
}

// reach returns after one round trip to a node, and reports whether it took place
// before ctx ended. Where it was measured lately, no packet is sent.
func (c *Cluster) reach(ctx context.Context, id ids.Node) bool {
	if rtt, known := c.lately(id); known {
		return Pause(ctx, rtt)
	}
	rtt, err := c.host.Probe(ctx, string(id))
	if err == nil {
		c.near.Sample(id, rtt, nil)
	}
	return err == nil
}

// Pause waits, and reports whether ctx goes on.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
