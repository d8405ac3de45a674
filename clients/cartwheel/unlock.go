package cartwheel

import (
	"context"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// unlock gives up a range. What was written is committed before; while it is
// not, the lock stays: others would read the old bytes under it.
func (c *Client) unlock(ctx context.Context, o ids.Object, l mount.Lock) error {
	err := c.flushFirst(ctx, o)
	if err != nil {
		return err
	}
	// Forgotten first: once it is free, it may be taken by the same owner again,
	// as kernels use the numbers of owners again.
	c.locks.set(o, 0, l, lockSession{})
	out, cancel := c.remotely(ctx)
	defer cancel()
	if _, _, err = c.askLock(out, o, &pb.LockRequest{Lock: toWire(o, l)}); err == nil {
		return nil
	}
	if route.MayComeLater(err) {
		c.releaseLater(o, l)
	}
	if ctx.Err() != nil {
		err = fault.Wrap(fault.Interrupted, "cartwheel.SetLock", o.String(), err)
	}
	return err
}

// unlockOwner gives up every range that an owner holds on an object.
func (c *Client) unlockOwner(ctx context.Context, o ids.Object, owner mount.LockOwner) {
	c.unlockAll(ctx, o, func(h *holding) bool { return h.lock.Owner == owner && !h.lock.Whole })
}

// unlockHandle gives up what was taken through a handle, and is not given up
// by its owner's close; flocks only with whole. It does not go by an flock's
// owner: a kernel tells of a close late, and names that owner by an address
// that the next open may have by then, with a lock of its own.
func (c *Client) unlockHandle(ctx context.Context, o ids.Object, id mount.Handle, whole bool) {
	c.unlockAll(ctx, o, func(h *holding) bool { return h.handle == id && (whole || !h.lock.Whole) })
}

// unlockAll gives up what is held of an object and matches: for each owner all
// at once, however many ranges. What cannot be given up within the request is
// given up behind it.
func (c *Client) unlockAll(ctx context.Context, o ids.Object, match func(*holding) bool) {
	type space struct {
		owner mount.LockOwner
		whole bool
	}
	done := map[space]bool{}
	for _, h := range c.locks.which(o, match) {
		s := space{h.lock.Owner, h.lock.Whole}
		if done[s] {
			continue
		}
		done[s] = true
		l := mount.Lock{Owner: s.owner, Whole: s.whole, Start: 0, End: mount.LockEnd, PID: h.lock.PID, Type: mount.Unlock}
		if ctx.Err() != nil || c.unlock(ctx, o, l) != nil {
			c.releaseLater(o, l)
		}
	}
}

// releaseEvery is the pause between attempts to give a lock up, releaseLimit how
// long one may take.
const (
	releaseEvery = time.Second
	releaseLimit = 5 * time.Second
)

// releaseLater gives up a lock that could not be given up within its request,
// until that is done or the client ends. Who asks here for a lock on the object
// waits for it: the owner may be the same one again.
func (c *Client) releaseLater(o ids.Object, l mount.Lock) {
	done := c.locks.giving(o)
	if !c.spawn(func() {
		defer done()
		tick := time.NewTicker(releaseEvery)
		defer tick.Stop()
		for {
			err := c.releaseNow(o, l)
			if err == nil || c.ctx.Err() != nil || !route.MayComeLater(err) {
				return // the session's end does it where nothing else can
			}
			c.opt.Logger.Debug("a lock could not be given up yet", "object", o.String(), "err", err)
			select {
			case <-tick.C:
			case <-c.ctx.Done():
				return
			}
		}
	}) {
		done()
	}
}

// releaseNow is unlock for nobody's request.
func (c *Client) releaseNow(o ids.Object, l mount.Lock) error {
	slow, done := c.patiently(c.ctx)
	err := c.engine.FlushObject(slow, o)
	late := slow.Err() != nil
	done()
	if err != nil && late {
		return fault.Wrap(fault.TimedOut, "cartwheel.release", o.String(), err)
	}
	// A flush that failed otherwise will not succeed later: its handles know.
	c.locks.set(o, 0, l, lockSession{})
	ctx, cancel := context.WithTimeout(c.ctx, releaseLimit)
	defer cancel()
	_, _, err = c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, l)})
	return err
}
