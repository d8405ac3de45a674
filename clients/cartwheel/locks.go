package cartwheel

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// Types of pb.Lock.
const (
	wireRead   = 0
	wireWrite  = 1
	wireUnlock = 2
)

// waitLimit bounds how long one may wait for a lock.
const waitLimit = 7 * 24 * time.Hour

// holding is a lock that this client believes it has.
type holding struct {
	handle mount.Handle // through which it was taken last
	lock   mount.Lock
}

// locks remembers what is held, to give it up when handles close and to claim
// it from a new active. The node's table is the authority.
type locks struct {
	mu   sync.Mutex // guards below
	held map[geoconfig.ObjectID][]holding
	lost map[geoconfig.ObjectID]bool
	// going are releases under way, which kernels tell of after close returned.
	going map[geoconfig.ObjectID][]chan struct{}
}

func (t *locks) init() {
	t.held = map[geoconfig.ObjectID][]holding{}
	t.lost = map[geoconfig.ObjectID]bool{}
	t.going = map[geoconfig.ObjectID][]chan struct{}{}
}

// releasing notes that a handle of an object is being released, until done.
func (t *locks) releasing(o geoconfig.ObjectID) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held[o]) == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	t.going[o] = append(t.going[o], ended)
	return func() {
		close(ended)
		t.mu.Lock()
		defer t.mu.Unlock()
		list := t.going[o]
		if i := slices.Index(list, ended); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if t.going[o] = list; len(list) == 0 {
			delete(t.going, o)
		}
	}
}

// settled waits for the releases under way of an object.
func (t *locks) settled(ctx context.Context, o geoconfig.ObjectID) error {
	t.mu.Lock()
	going := slices.Clone(t.going[o])
	t.mu.Unlock()
	for _, ended := range going {
		select {
		case <-ended:
		case <-ctx.Done():
			return fault.E(fault.Interrupted, "cartwheel.SetLock", o.String(), "")
		}
	}
	return nil
}

// soon reports whether somebody else here holds something of an object, and
// waits for those that are just giving it up, or for a moment.
func (t *locks) soon(ctx context.Context, o geoconfig.ObjectID, l *mount.Lock) bool {
	t.mu.Lock()
	going := slices.Clone(t.going[o])
	other := slices.ContainsFunc(t.held[o], func(h holding) bool { return h.lock.Owner != l.Owner && h.lock.Whole == l.Whole })
	t.mu.Unlock()
	for _, ended := range going {
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
	if len(going) > 0 || !other {
		return len(going) > 0
	}
	pause := time.NewTimer(closeDelay)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// closeDelay is how late a kernel may tell of a close after it returned; so
// long a lock that is held here and in the way is given another chance.
const closeDelay = 3 * time.Millisecond

// set replaces what an owner holds in the range of l by l.
func (t *locks) set(o geoconfig.ObjectID, through mount.Handle, l mount.Lock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept []holding
	for _, h := range t.held[o] {
		if h.lock.Owner != l.Owner || h.lock.Whole != l.Whole || h.lock.End < l.Start || h.lock.Start > l.End {
			kept = append(kept, h)
			continue
		}
		if h.lock.Start < l.Start {
			left := h
			left.lock.End = l.Start - 1
			kept = append(kept, left)
		}
		if h.lock.End > l.End {
			right := h
			right.lock.Start = l.End + 1
			kept = append(kept, right)
		}
	}
	if l.Type != mount.Unlock {
		kept = append(kept, holding{through, l})
	}
	if len(kept) == 0 {
		delete(t.held, o)
		return
	}
	t.held[o] = kept
}

// which returns what is held of an object and matches.
func (t *locks) which(o geoconfig.ObjectID, match func(*holding) bool) []holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []holding
	for i := range t.held[o] {
		if match(&t.held[o][i]) {
			out = append(out, t.held[o][i])
		}
	}
	return out
}

// slices returns those in which something is locked.
func (t *locks) slices() []geoconfig.SliceID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []geoconfig.SliceID
	for o := range t.held {
		if !slices.Contains(out, o.Slice()) {
			out = append(out, o.Slice())
		}
	}
	return out
}

// fail answers once for a lock that was lost.
func (t *locks) fail(o geoconfig.ObjectID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lost[o] {
		return nil
	}
	delete(t.lost, o)
	return fault.E(fault.LostLock, "cartwheel.Write", o.String(), "a lock on the file was lost: what it protected may have changed")
}

func toWire(o geoconfig.ObjectID, l mount.Lock) *pb.Lock {
	out := &pb.Lock{Object: uint64(o), Owner: uint64(l.Owner), Flock: l.Whole, Start: l.Start, End: l.End, Pid: l.PID}
	if l.Whole {
		out.Start, out.End = 0, math.MaxUint64
	}
	if l.End >= mount.LockEnd {
		out.End = math.MaxUint64
	}
	switch l.Type {
	case mount.ReadLock:
		out.Type = wireRead
	case mount.WriteLock:
		out.Type = wireWrite
	default:
		out.Type = wireUnlock
	}
	return out
}

func fromWire(l *pb.Lock) mount.Lock {
	out := mount.Lock{Owner: mount.LockOwner(l.Owner), Start: l.Start, End: min(l.End, mount.LockEnd), PID: l.Pid, Whole: l.Flock}
	switch l.Type {
	case wireRead:
		out.Type = mount.ReadLock
	case wireWrite:
		out.Type = mount.WriteLock
	}
	return out
}

// askLock sends a request about a lock to the object's active.
func (c *Client) askLock(ctx context.Context, o geoconfig.ObjectID, req *pb.LockRequest) (*pb.LockResponse, error) {
	if err := c.settle(ctx, o); err != nil {
		return nil, err
	}
	var resp *pb.LockResponse
	err := c.router.Active(ctx, o.Slice(), func(ctx context.Context, node geoconfig.NodeID, epoch geoconfig.Epoch) (*pb.Refusal, error) {
		req.Slice, req.Epoch, req.Client, req.Session = uint32(o.Slice()), uint64(epoch), c.cluster.Client(), c.sessions.With(ctx, node)
		resp = &pb.LockResponse{}
		body, err := c.cluster.Call(ctx, node, wire.Operation, method.Lock, req, nil, resp)
		body.Release()
		if fault.Is(err, fault.Expired) { // the session just ended: the next attempt has the new one
			err = fault.E(fault.Again, "cartwheel.lock", string(node), "the session has ended")
		}
		return resp.Refusal, err
	})
	return resp, err
}

// GetLock implements mount.Locks.
func (c *Client) GetLock(ctx context.Context, _ mount.Caller, id mount.NodeID, _ mount.Handle, l mount.Lock) (mount.Lock, error) {
	o, _, ok := c.nodes.find(id)
	if !ok {
		return mount.Lock{}, staleNode
	}
	out, cancel := c.remotely(ctx)
	defer cancel()
	resp, err := c.askLock(out, o, &pb.LockRequest{Lock: toWire(o, l), Test: true})
	if err != nil {
		return mount.Lock{}, err
	}
	if resp.Conflict == nil {
		l.Type = mount.Unlock
		return l, nil
	}
	return fromWire(resp.Conflict), nil
}

// SetLock implements mount.Locks. What was written under a lock is committed
// before it is given up, and what others wrote is seen once it is taken.
func (c *Client) SetLock(ctx context.Context, _ mount.Caller, id mount.NodeID, hid mount.Handle, l mount.Lock, wait bool) error {
	o, _, ok := c.nodes.find(id)
	if !ok {
		return staleNode
	}
	if l.Whole {
		l.Start, l.End = 0, mount.LockEnd
	}
	if l.Type == mount.Unlock {
		return c.unlock(ctx, o, l)
	}
	if !wait {
		out, cancel := c.remotely(ctx)
		defer cancel()
		return c.takeLock(out, o, hid, l, false)
	}
	out, cancel := context.WithTimeout(c.ctx, waitLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := c.takeLock(out, o, hid, l, true)
	if err == nil || ctx.Err() == nil {
		return err
	}
	// It may have been granted at the last moment.
	undo := l
	undo.Type = mount.Unlock
	if len(c.locks.which(o, func(h *holding) bool { return h.lock.Owner == l.Owner && h.lock.Whole == l.Whole })) == 0 {
		c.background(func(ctx context.Context) { _, _ = c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, undo)}) }) // the session's end does it too
	}
	return fault.E(fault.Interrupted, "cartwheel.SetLock", o.String(), "")
}

func (c *Client) takeLock(ctx context.Context, o geoconfig.ObjectID, hid mount.Handle, l mount.Lock, wait bool) error {
	if err := c.locks.settled(ctx, o); err != nil {
		return err
	}
	resp, err := c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, l), Wait: wait})
	if err == nil && !resp.Granted && c.locks.soon(ctx, o, &l) {
		resp, err = c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, l)})
	}
	if err != nil {
		return err
	}
	if !resp.Granted {
		return fault.E(fault.Again, "cartwheel.SetLock", o.String(), "")
	}
	c.locks.set(o, hid, l)
	if !l.Whole {
		c.nodes.lock(o)
	}
	if _, _, ok := c.names.Attr(o); ok {
		return nil // a lease says that nobody changed it
	}
	a, err := c.fetch(ctx, o, true, false)
	if err != nil {
		return err
	}
	c.engine.SetVersion(a)
	c.nodes.mu.Lock()
	n := c.nodes.known(o)
	old := n != nil && n.pages != a.Version
	if n != nil {
		n.pages = a.Version
	}
	c.nodes.mu.Unlock()
	if old {
		done := make(chan struct{})
		c.tellKernel(&notice{inodes: []mount.NodeID{plain(o)}}, false, func() { close(done) })
		<-done
	}
	return nil
}

func (c *Client) unlock(ctx context.Context, o geoconfig.ObjectID, l mount.Lock) error {
	out, cancel := c.remotely(ctx)
	defer cancel()
	flushed := c.engine.FlushObject(out, o) // its handles are told of a failure
	// Forgotten first: once it is free, it may be taken by the same owner again,
	// as kernels use the numbers of owners again.
	c.locks.set(o, 0, l)
	_, err := c.askLock(out, o, &pb.LockRequest{Lock: toWire(o, l)})
	if err == nil {
		err = flushed
	}
	return err
}

// unlockOwner gives up every range that an owner holds on an object.
func (c *Client) unlockOwner(o geoconfig.ObjectID, owner mount.LockOwner) {
	c.unlockAll(o, func(h *holding) bool { return h.lock.Owner == owner && !h.lock.Whole })
}

// unlockHandle gives up what was taken through a handle, and is not given up
// by its owner's close; flocks only with whole. It does not go by an flock's
// owner: a kernel tells of a close late, and names that owner by an address
// that the next open may have by then, with a lock of its own.
func (c *Client) unlockHandle(o geoconfig.ObjectID, id mount.Handle, whole bool) {
	c.unlockAll(o, func(h *holding) bool { return h.handle == id && (whole || !h.lock.Whole) })
}

func (c *Client) unlockAll(o geoconfig.ObjectID, match func(*holding) bool) {
	for _, h := range c.locks.which(o, match) {
		l := h.lock
		l.Type = mount.Unlock
		ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
		if err := c.unlock(ctx, o, l); err != nil {
			c.log.Info("a lock could not be given up; the session's end will", "object", o.String(), "err", err)
		}
		cancel()
	}
}
