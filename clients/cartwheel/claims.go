package cartwheel

import (
	"context"
	"slices"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// claim tells a slice's new active what this client has open and locked there.
func (c *Client) claim(row geoconfig.SliceRow) {
	req := &pb.ClaimRequest{Slice: uint32(row.ID), Client: c.cluster.Client()}
	c.locks.mu.Lock()
	for o, list := range c.locks.held {
		if o.Slice() == row.ID {
			for _, h := range list {
				req.Locks = append(req.Locks, toWire(o, h.lock))
			}
		}
	}
	c.locks.mu.Unlock()
	c.nodes.mu.Lock()
	for _, n := range c.nodes.byID {
		if n.opens > 0 && n.object.Slice() == row.ID && c.alone.table.Of(n.object) == nil {
			req.Open = append(req.Open, uint64(n.object))
		}
	}
	c.nodes.mu.Unlock()
	if len(req.Locks)+len(req.Open) == 0 {
		return
	}
	for _, l := range req.Locks {
		req.Tickets = append(req.Tickets, c.tickets.With(l.Object)...)
	}
	req.Tickets = append(req.Tickets, c.tickets.With(req.Open...)...)
	ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
	defer cancel()
	var resp *pb.ClaimResponse
	var at lockSession
	err := c.router.Active(ctx, row.ID, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		at = lockSession{node, c.sessions.With(ctx, node)}
		req.Epoch, req.Session = uint64(epoch), at.number
		resp = &pb.ClaimResponse{}
		body, err := c.cluster.Call(ctx, node, wire.Operation, method.Claim, req, nil, resp)
		body.Release()
		if fault.Is(err, fault.Expired) {
			err = fault.E(fault.Again, "cartwheel.claim", string(node), "the session has ended")
		}
		return resp.Refusal, err
	})
	if err != nil {
		if c.ctx.Err() == nil {
			c.opt.Logger.Warn("open files and locks could not be claimed from a slice's new active", "slice", uint32(row.ID), "err", err)
		}
		return
	}
	c.loseLocks(func(o ids.Object, h *holding) bool {
		return o.Slice() == row.ID && slices.ContainsFunc(resp.Lost, func(l *pb.Lock) bool {
			m := fromWire(l)
			return ids.Object(l.Object) == o && m.Owner == h.lock.Owner && m.Whole == h.lock.Whole && m.Start <= h.lock.End && m.End >= h.lock.Start
		})
	})
	c.locks.claimed(row.ID, at)
}

// doubtLocks hears that the session with a node ended. Until it is known who acts
// for the slices in which locks are held there, commits of locked files wait:
// another client may have the locks.
func (c *Client) doubtLocks(node ids.Node) {
	for _, id := range c.locks.slices() {
		row, ok := c.router.Known(id)
		if !ok || row.Active != node {
			continue
		}
		known := c.locks.doubt(id)
		if known == nil {
			continue
		}
		if !c.spawn(func() {
			defer known()
			c.loseSlice(id, node)
		}) {
			known()
		}
	}
}

// loseSlice waits until it is clear who acts for a slice after the session with
// its active ended. The same node has given the locks up, and others may have
// had them since. Another one has them claimed.
func (c *Client) loseSlice(id ids.Slice, node ids.Node) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
	defer cancel()
	gone := func(o ids.Object, h *holding) bool {
		return o.Slice() == id && h.at.node == node && h.at.number != c.sessions.Current(node)
	}
	one := c.locks.any(gone)
	if one == nil {
		return
	}
	_, _, err := c.askLock(ctx, ids.Object(one.Object), &pb.LockRequest{Lock: one, Test: true})
	if row, ok := c.router.Known(id); err != nil || ok && row.Active == node {
		c.loseLocks(gone)
	}
}

// loseLocks takes note that locks are lost: the writes of the handles through
// which they were taken fail from now on, and so do bytes that were written
// under them and are not committed.
func (c *Client) loseLocks(which func(ids.Object, *holding) bool) {
	t := &c.locks
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		dirty := c.engine.Overlay(&pb.Attr{Object: uint64(o)})
		var kept []holding
		for i := range list {
			h := &list[i]
			if !which(o, h) {
				kept = append(kept, *h)
				continue
			}
			c.opt.Logger.Warn("a lock was lost", "object", o.String())
			t.lost[h.handle] = struct{}{}
			if dirty && h.lock.Type == mount.WriteLock {
				t.spoiled[o] = struct{}{}
			}
		}
		if t.held[o] = kept; len(kept) == 0 {
			delete(t.held, o)
		}
	}
}

// claimed notes that what is held in a slice goes with another session now.
func (t *locks) claimed(id ids.Slice, at lockSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		for i := range list {
			if o.Slice() == id {
				list[i].at = at
			}
		}
	}
}

// any returns one lock that is held and matches, or nil.
func (t *locks) any(which func(ids.Object, *holding) bool) *pb.Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		for i := range list {
			if which(o, &list[i]) {
				return toWire(o, list[i].lock)
			}
		}
	}
	return nil
}

// doubt begins a time in which a slice's locks cannot be trusted, which ends
// when known is called; nil where one is under way.
func (t *locks) doubt(id ids.Slice) (known func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubts[id] != nil {
		return nil
	}
	over := make(chan struct{})
	t.doubts[id] = over
	return func() {
		t.mu.Lock()
		delete(t.doubts, id)
		t.mu.Unlock()
		close(over)
	}
}

// mayCommit waits until it is known whether the locks on an object are held, and
// fails where bytes that were written under one are not to be committed.
func (t *locks) mayCommit(ctx context.Context, o ids.Object) error {
	for {
		t.mu.Lock()
		over := t.doubts[o.Slice()]
		_, spoiled := t.spoiled[o]
		if over == nil || len(t.held[o]) == 0 {
			delete(t.spoiled, o)
			t.mu.Unlock()
			if spoiled {
				return lostLock(o)
			}
			return nil
		}
		t.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "cartwheel.Commit", o.String(), ctx.Err())
		}
	}
}

// fail answers what is written through a handle whose lock was lost.
func (t *locks) fail(h mount.Handle, o ids.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, lost := t.lost[h]; lost {
		return lostLock(o)
	}
	return nil
}

// closed forgets a handle.
func (t *locks) closed(h mount.Handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lost, h)
}

func lostLock(o ids.Object) error {
	return fault.E(fault.LostLock, "cartwheel.Write", o.String(), "a lock on the file was lost: what it protected may have changed")
}
