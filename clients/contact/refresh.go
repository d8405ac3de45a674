package contact

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// A client learns the nodes when it connects. Later a slice's row may name a node
// that joined since, and a node may have moved to another address. Both show
// when the client has something to say to that node: then it learns the nodes
// again.

const (
	// refreshEvery is the time between two such questions: a node that is merely
	// down is not worth more.
	refreshEvery = 2 * time.Second
	// refreshLimit bounds one such question to one node.
	refreshLimit = 2 * time.Second
)

// relearn learns the nodes anew from the nearest that answers, without the one
// that is looked for. Callers at the same time share one question; a question
// that was answered a moment ago is not asked again.
func (c *Cluster) relearn(ctx context.Context, without ids.Node) {
	select {
	case c.refreshing <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.refreshing }()
	if now := c.opt.Clock(); c.refreshed.Load() != 0 && now-time.Duration(c.refreshed.Load()) < refreshEvery {
		return
	}
	for _, id := range c.Nearest() {
		if id == without || ctx.Err() != nil {
			continue
		}
		one, cancel := context.WithTimeout(ctx, refreshLimit)
		err := c.Refresh(one, id)
		cancel()
		if err == nil {
			break
		}
	}
	c.refreshed.Store(int64(c.opt.Clock()))
}

// findOrLearn finds a node, learning the nodes anew where it is not known.
func (c *Cluster) findOrLearn(ctx context.Context, id ids.Node) (*node, error) {
	n, err := c.find(id)
	if err == nil {
		return n, nil
	}
	c.relearn(ctx, id)
	return c.find(id)
}

// lookElsewhere learns the nodes anew in the background, because a node does not
// answer at the address that is known.
func (c *Cluster) lookElsewhere(id ids.Node) {
	select {
	case c.looking <- struct{}{}:
	default:
		return // it is being done
	}
	if !c.background(func() {
		defer func() { <-c.looking }()
		c.relearn(c.ctx, id)
	}) {
		<-c.looking
	}
}

// Lives asks a node for a sign of life. Any answer is one: a node that was started again
// refuses to do anything before an introduction. Where none comes, the nodes are learned
// anew in the background, because it may have moved.
func (c *Cluster) Lives(ctx context.Context, id ids.Node) bool {
	_, err := c.host.Ping(ctx, string(id))
	c.answered(id, err)
	if err == nil || wire.Answered(err) {
		return true
	}
	c.lookElsewhere(id)
	return false
}

// background runs fn in a goroutine that Close joins; false: that has begun.
func (c *Cluster) background(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(fn)
	return true
}
