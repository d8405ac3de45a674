package locks

import (
	"context"
	"slices"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Claim tells a slice's new active what this client has locked there, and what
// it has open, which the caller lists: open runs after the locks are gathered.
// It blocks until the active answers.
func (k *Keeper) Claim(row geoconfig.SliceRow, open func() []uint64) {
	req := &pb.ClaimRequest{Slice: uint32(row.ID), Client: k.opt.Cluster.Client()}
	k.table.mu.Lock()
	for o, list := range k.table.held {
		if o.Slice() == row.ID {
			for _, h := range list {
				req.Locks = append(req.Locks, toWire(o, h.lock))
			}
		}
	}
	k.table.mu.Unlock()
	req.Open = open()
	if len(req.Locks)+len(req.Open) == 0 {
		return
	}
	for _, l := range req.Locks {
		req.Tickets = append(req.Tickets, k.opt.Tickets.With(l.Object)...)
	}
	req.Tickets = append(req.Tickets, k.opt.Tickets.With(req.Open...)...)
	ctx, cancel := context.WithTimeout(k.opt.Context, k.opt.OpTimeout)
	defer cancel()
	var resp *pb.ClaimResponse
	var at lockSession
	err := k.opt.Router.Active(ctx, row.ID, func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		at = lockSession{node, k.opt.Sessions.With(ctx, node)}
		req.Epoch, req.Session = uint64(epoch), at.number
		resp = &pb.ClaimResponse{}
		body, err := k.opt.Cluster.Call(ctx, node, wire.Operation, method.Claim, req, nil, resp)
		body.Release()
		if fault.Is(err, fault.Expired) {
			err = fault.E(fault.Again, "cartwheel.claim", string(node), "the session has ended")
		}
		return resp.Refusal, err
	})
	if err != nil {
		if k.opt.Context.Err() == nil {
			k.opt.Logger.Warn("open files and locks could not be claimed from a slice's new active", logattr.Slice(row.ID), logattr.Err(err))
		}
		return
	}
	k.lose(func(o ids.Object, h *holding) bool {
		return o.Slice() == row.ID && slices.ContainsFunc(resp.Lost, func(l *pb.Lock) bool {
			m := fromWire(l)
			return ids.Object(l.Object) == o && m.Owner == h.lock.Owner && m.Whole == h.lock.Whole && m.Start <= h.lock.End && m.End >= h.lock.Start
		})
	})
	k.table.claimed(row.ID, at)
}

// Doubt notes that the session with a node ended. Until it is known which node
// acts for the slices in which locks are held there, commits of locked files
// wait: another client may have the locks. It does not block.
func (k *Keeper) Doubt(node ids.Node) {
	for _, id := range k.table.slices() {
		row, ok := k.opt.Router.Known(id)
		if !ok || row.Active != node {
			continue
		}
		known := k.table.doubt(id)
		if known == nil {
			continue
		}
		if !k.opt.Spawn(func() {
			defer known()
			k.loseSlice(id, node)
		}) {
			known()
		}
	}
}

// loseSlice waits until it is clear which node acts for a slice after the session
// with its active ended. The same node has given the locks up, and other clients
// may have had them since. Another node has them claimed.
func (k *Keeper) loseSlice(id ids.Slice, node ids.Node) {
	ctx, cancel := context.WithTimeout(k.opt.Context, k.opt.OpTimeout)
	defer cancel()
	gone := func(o ids.Object, h *holding) bool {
		return o.Slice() == id && h.at.node == node && h.at.number != k.opt.Sessions.Current(node)
	}
	one := k.table.any(gone)
	if one == nil {
		return
	}
	_, _, err := k.ask(ctx, ids.Object(one.Object), &pb.LockRequest{Lock: one, Test: true})
	if row, ok := k.opt.Router.Known(id); err != nil || ok && row.Active == node {
		k.lose(gone)
	}
}

// lose notes that locks are lost. From now on the writes of the handles through
// which they were taken fail. So do bytes that were written under them and are
// not committed.
func (k *Keeper) lose(which func(ids.Object, *holding) bool) {
	t := &k.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for o, list := range t.held {
		dirty := k.opt.IsDirty(o)
		var kept []holding
		for i := range list {
			h := &list[i]
			if !which(o, h) {
				kept = append(kept, *h)
				continue
			}
			k.opt.Logger.Warn("a lock was lost", logattr.Object(o))
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
