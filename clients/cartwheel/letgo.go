package cartwheel

import (
	"context"
	"sync"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// lettersGo is how many objects are let go of at once: a process that ends may
// close ten thousand removed files.
const lettersGo = 64

// farewells are the files that are being let go of.
type farewells struct {
	mu      sync.Mutex // guards below
	waiting []inodes.Leaving
	working int // goroutines
}

// isRemoved reports whether an object is known to have no name. Nobody will open
// it, so that a close need not wait until its writes are at the nodes.
func (c *Client) isRemoved(o ids.Object) bool {
	if !c.nodes.IsHeld(o) {
		return false
	}
	a, _, ok := c.names.Attr(o)
	return ok && a.Nlink == 0
}

// letGo tells a file's active, in the background, that it is no longer open here.
// If that fails, the end of the session does it.
func (c *Client) letGo(l inodes.Leaving) {
	t := &c.farewells
	t.mu.Lock()
	t.waiting = append(t.waiting, l)
	more := t.working < lettersGo
	if more {
		t.working++
	}
	t.mu.Unlock()
	if more {
		c.life.spawn(c.letAllGo)
	}
}

// letAllGo lets go of objects until none waits.
func (c *Client) letAllGo() {
	for l, ok := c.farewells.next(); ok; l, ok = c.farewells.next() {
		c.letOneGo(l.Object)
		l.End()
	}
}

// next takes the object that has waited longest. Without one, the goroutine that
// asks must end.
func (t *farewells) next() (l inodes.Leaving, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.waiting = nil
		t.working--
		return l, false
	}
	l = t.waiting[0]
	t.waiting = t.waiting[1:]
	return l, true
}

// letOneGo lets go of an object. What is dirty of it here is sent if the object
// stays, because another client has it open or it has a name after all.
func (c *Client) letOneGo(o ids.Object) {
	ctx, cancel := context.WithTimeout(c.life.ctx, c.opt.OpTimeout)
	defer cancel()
	resp, _, err := c.calls.Operate(ctx, calls.Operation{Slice: o.Slice(), Principal: &pb.Principal{}, Op: &pb.Operation{
		Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: c.cluster.Client(), Release: true}}}})
	if err != nil && c.life.ctx.Err() == nil {
		c.opt.Logger.Info("a removed file could not be let go of; the session's end will", "object", o.String(), "err", err)
	}
	if err == nil && !resp.Result.Existed {
		c.engine.Discard(o)
		return
	}
	c.engine.Send(o)
}
