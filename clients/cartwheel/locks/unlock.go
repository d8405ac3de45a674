package locks

import (
	"context"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// unlock gives up a range. What was written is committed before; while it is
// not, the lock stays: others would read the old bytes under it.
func (k *Keeper) unlock(ctx context.Context, o ids.Object, l mount.Lock) error {
	err := k.opt.Files.Flush(ctx, o)
	if err != nil {
		return err
	}
	// Forgotten first: once it is free, it may be taken by the same owner again,
	// as kernels use the numbers of owners again.
	k.table.set(o, 0, l, lockSession{})
	out, cancel := k.opt.Remotely(ctx)
	defer cancel()
	if _, _, err = k.ask(out, o, &pb.LockRequest{Lock: toWire(o, l)}); err == nil {
		return nil
	}
	if route.MayComeLater(err) {
		k.releaseLater(o, l)
	}
	if ctx.Err() != nil {
		err = fault.Wrap(fault.Interrupted, "cartwheel.SetLock", o.String(), err)
	}
	return err
}

// UnlockOwner gives up every range that an owner holds on an object.
func (k *Keeper) UnlockOwner(ctx context.Context, o ids.Object, owner mount.LockOwner) {
	k.unlockAll(ctx, o, func(h *holding) bool { return h.lock.Owner == owner && !h.lock.Whole })
}

// Release gives up what was taken through a handle that closes, and is not given
// up by its owner's close; flocks only with whole. Requests for locks on the
// object wait until it is done. It does not go by an flock's owner: a kernel
// tells of a close late, and names that owner by an address that the next open
// may have by then, with a lock of its own.
func (k *Keeper) Release(o ids.Object, id mount.Handle, whole bool) {
	done := k.table.releasing(o)
	k.unlockAll(k.opt.Context, o, func(h *holding) bool { return h.handle == id && (whole || !h.lock.Whole) })
	done()
	k.table.closed(id)
}

// unlockAll gives up what is held of an object and matches: for each owner all
// at once, however many ranges. What cannot be given up within the request is
// given up behind it.
func (k *Keeper) unlockAll(ctx context.Context, o ids.Object, match func(*holding) bool) {
	type space struct {
		owner mount.LockOwner
		whole bool
	}
	done := map[space]bool{}
	for _, h := range k.table.which(o, match) {
		s := space{h.lock.Owner, h.lock.Whole}
		if done[s] {
			continue
		}
		done[s] = true
		l := mount.Lock{Owner: s.owner, Whole: s.whole, Start: 0, End: mount.LockEnd, PID: h.lock.PID, Type: mount.Unlock}
		if ctx.Err() != nil || k.unlock(ctx, o, l) != nil {
			k.releaseLater(o, l)
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
// until that is done or the client ends. A request for a lock on the object waits
// for it: the owner may be the same one again.
func (k *Keeper) releaseLater(o ids.Object, l mount.Lock) {
	done := k.table.giving(o)
	if !k.opt.Spawn(func() {
		defer done()
		tick := time.NewTicker(releaseEvery)
		defer tick.Stop()
		for {
			err := k.releaseNow(o, l)
			if err == nil || k.opt.Context.Err() != nil || !route.MayComeLater(err) {
				return // the session's end does it where nothing else can
			}
			k.opt.Logger.Debug("a lock could not be given up yet", logattr.Object(o), logattr.Err(err))
			select {
			case <-tick.C:
			case <-k.opt.Context.Done():
				return
			}
		}
	}) {
		done()
	}
}

// releaseNow is unlock for no request.
func (k *Keeper) releaseNow(o ids.Object, l mount.Lock) error {
	late, err := k.opt.Files.FlushLate(o)
	if err != nil && late {
		return fault.Wrap(fault.TimedOut, "cartwheel.release", o.String(), err)
	}
	// A flush that failed otherwise will not succeed later: its handles know.
	k.table.set(o, 0, l, lockSession{})
	ctx, cancel := context.WithTimeout(k.opt.Context, releaseLimit)
	defer cancel()
	_, _, err = k.ask(ctx, o, &pb.LockRequest{Lock: toWire(o, l)})
	return err
}
