package drilling

import (
	"context"
	"fmt"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const (
	// orderSlack is how much longer than the drill an order may take.
	orderSlack = 10 * time.Second
	// probeLook is how often the stop conditions of the probe are looked at, and
	// nodesLook how often those of the cluster.
	probeLook, nodesLook = 50 * time.Millisecond, time.Second
	// patience is how often in a row a node may not answer until it counts as failing.
	patience = 2
)

// answer is how a drill ended at one node.
type answer struct {
	node  ids.Node
	whole bool
	err   error
}

// orders are the calls by which the nodes take part. They end it when they end.
type orders struct {
	answers chan answer
	left    int
	cancel  context.CancelFunc
}

// give orders a drill at all nodes.
func (c *Conductor) give(ctx context.Context) *orders {
	nodes := c.o.Cluster.Nodes()
	o := &orders{answers: make(chan answer, len(nodes)), left: len(nodes)}
	ctx, o.cancel = context.WithTimeout(ctx, c.plan.For+orderSlack)
	for _, n := range nodes {
		go func() { // end waits for it
			var a pb.DrillResponse
			b, err := c.o.Cluster.Call(ctx, n.ID, wire.Operation, method.Drill, order(c.plan, false), nil, &a)
			b.Release()
			o.answers <- answer{n.ID, a.Whole, err}
		}()
	}
	return o
}

// end has all nodes end the drill, and waits for the calls.
func (o *orders) end() {
	o.cancel()
	for ; o.left > 0; o.left-- {
		<-o.answers
	}
}

// conduct has the nodes fail, watches, and ends it. It returns why it ended. An error
// means that a node refused, and nothing counts.
func (c *Conductor) conduct(ctx context.Context, p *Probe) (drill.Stop, string, error) {
	o := c.give(context.WithoutCancel(ctx)) // end cancels them, in every case
	defer o.end()
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	trouble := make(chan trouble, 1)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		c.watchNodes(watch, trouble)
	}()
	defer func() { cancel(); <-watching }()
	tick := time.NewTicker(probeLook)
	defer tick.Stop()
	for {
		select {
		case a := <-o.answers:
			if o.left--; refused(a.err) {
				return "", "", a.err
			}
			if a.err != nil || !a.whole {
				return drill.Failing, fmt.Sprintf("node …%s did not carry the drill on: %v", tail(a.node), a.err), nil
			}
			if o.left == 0 {
				return drill.Time, "it lasted as long as it was to", nil
			}
		case t := <-trouble:
			return t.stop, t.why, nil
		case <-ctx.Done():
			return drill.Interrupted, "the commander ended it", nil
		case <-tick.C:
			if err := p.Wrong(); err != nil {
				return drill.Wrong, err.Error(), nil
			}
			if waits := p.Waits(); waits > c.o.StopAfter {
				return drill.Pause, fmt.Sprintf("a stream of the probe paused for more than %v", c.o.StopAfter), nil
			}
		}
	}
}

// tail is the end of a node's ID, which tells nodes apart.
func tail(id ids.Node) string { return string(id[max(0, len(id)-8):]) }

// refused reports whether a node did not begin.
func refused(err error) bool {
	switch fault.KindOf(err) {
	case fault.Busy, fault.Permission, fault.NotSupported, fault.Invalid, fault.Unauthorized:
		return true
	}
	return false
}

// trouble is a stop condition that came true.
type trouble struct {
	stop drill.Stop
	why  string
}

// watchNodes looks at the nodes until ctx ends or there is trouble. Out has room for it.
func (c *Conductor) watchNodes(ctx context.Context, out chan<- trouble) {
	silent := map[ids.Node]int{}
	for contact.Pause(ctx, nodesLook) {
		seen := look(ctx, c.o.Cluster)
		if ctx.Err() != nil {
			return
		}
		if t, is := findTrouble(&seen, silent); is {
			out <- t
			return
		}
	}
}

// findTrouble looks for a slice without a normal member, and for a node that was silent
// too often. The commander gets through to those that are played dead.
func findTrouble(seen *Seen, silent map[ids.Node]int) (trouble, bool) {
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.Err == nil {
			silent[n.ID] = 0
			continue
		}
		if silent[n.ID]++; silent[n.ID] >= patience {
			return trouble{drill.Failing, fmt.Sprintf("node …%s at %s does not answer its commander: %v", tail(n.ID), n.Site, n.Err)}, true
		}
	}
	for i := range seen.Slices {
		if s := &seen.Slices[i]; len(s.Normals()) < 1 {
			return trouble{drill.Members, fmt.Sprintf("slice %d has no normal member", s.ID)}, true
		}
	}
	return trouble{}, false
}
