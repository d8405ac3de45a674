package cartwheel

import (
	"context"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
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
	ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
	defer cancel()
	var resp *pb.ClaimResponse
	err := c.router.Active(ctx, row.ID, func(ctx context.Context, node geoconfig.NodeID, epoch geoconfig.Epoch) (*pb.Refusal, error) {
		req.Epoch, req.Session = uint64(epoch), c.sessions.With(ctx, node)
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
			c.log.Warn("open files and locks could not be claimed from a slice's new active", "slice", uint32(row.ID), "err", err)
		}
		return
	}
	c.loseLocks(resp.Lost)
}

// loseSlice waits until it is clear who acts for a slice after the session with
// its active ended. The same node has given the locks up, and others may have
// had them since.
func (c *Client) loseSlice(id geoconfig.SliceID, node geoconfig.NodeID) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
	defer cancel()
	var all []*pb.Lock
	c.locks.mu.Lock()
	for o, list := range c.locks.held {
		for _, h := range list {
			if o.Slice() == id {
				all = append(all, toWire(o, h.lock))
			}
		}
	}
	c.locks.mu.Unlock()
	if len(all) == 0 {
		return
	}
	_, err := c.askLock(ctx, geoconfig.ObjectID(all[0].Object), &pb.LockRequest{Lock: all[0], Test: true})
	if row, ok := c.router.Known(id); err != nil || ok && row.Active == node {
		c.loseLocks(all)
	}
}

// loseLocks makes the next write of what was locked fail.
func (c *Client) loseLocks(lost []*pb.Lock) {
	for _, l := range lost {
		o := geoconfig.ObjectID(l.Object)
		c.log.Warn("a lock was lost", "object", o.String())
		m := fromWire(l)
		m.Type = mount.Unlock
		c.locks.set(o, 0, m)
		c.locks.mu.Lock()
		c.locks.lost[o] = true
		c.locks.mu.Unlock()
	}
}
