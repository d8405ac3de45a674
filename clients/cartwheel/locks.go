package cartwheel

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
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
	at     lockSession
}

// lockSession is a session with a node: a lock goes with it.
type lockSession struct {
	node   ids.Node
	number uint64
}

// locks remembers what is held, to give it up when handles close and to claim
// it from a new active. The node's table is the authority.
type locks struct {
	mu   sync.Mutex // guards below
	held map[ids.Object][]holding
	// lost are the handles through which a lock was taken that was lost: their
	// writes fail until they close.
	lost map[mount.Handle]struct{}
	// spoiled are files with bytes that were not committed when a write lock was
	// lost: their next commit fails.
	spoiled map[ids.Object]struct{}
	// doubts are the slices in whose locks nobody can trust until it is known
	// whether another node has them: closed then.
	doubts map[ids.Slice]chan struct{}
	// going are releases under way, which kernels tell of after close returned.
	going map[ids.Object][]chan struct{}
}

func (t *locks) init() {
	t.held = map[ids.Object][]holding{}
	t.lost = map[mount.Handle]struct{}{}
	t.spoiled = map[ids.Object]struct{}{}
	t.doubts = map[ids.Slice]chan struct{}{}
	t.going = map[ids.Object][]chan struct{}{}
}

// releasing notes that a handle of an object is being released, until done.
func (t *locks) releasing(o ids.Object) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held[o]) == 0 {
		return func() {}
	}
	return t.givingLocked(o)
}

// giving notes that a lock of an object is being given up, until done.
func (t *locks) giving(o ids.Object) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.givingLocked(o)
}

func (t *locks) givingLocked(o ids.Object) (done func()) {
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
func (t *locks) settled(ctx context.Context, o ids.Object) error {
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
func (t *locks) soon(ctx context.Context, o ids.Object, l *mount.Lock) bool {
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
func (t *locks) set(o ids.Object, through mount.Handle, l mount.Lock, at lockSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setLocked(o, through, l, at)
}

func (t *locks) setLocked(o ids.Object, through mount.Handle, l mount.Lock, at lockSession) {
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
		kept = append(kept, holding{through, l, at})
	}
	if len(kept) == 0 {
		delete(t.held, o)
		return
	}
	t.held[o] = kept
}

// which returns what is held of an object and matches.
func (t *locks) which(o ids.Object, match func(*holding) bool) []holding {
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
func (t *locks) slices() []ids.Slice {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []ids.Slice
	for o := range t.held {
		if !slices.Contains(out, o.Slice()) {
			out = append(out, o.Slice())
		}
	}
	return out
}

func toWire(o ids.Object, l mount.Lock) *pb.Lock {
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

// askLock sends a request about a lock to the object's active, and says under
// which session it was answered. A request that waits is left with the node.
func (c *Client) askLock(ctx context.Context, o ids.Object, req *pb.LockRequest) (*pb.LockResponse, lockSession, error) {
	if err := c.settle(ctx, o); err != nil {
		return nil, lockSession{}, err
	}
	active := c.router.Active
	if req.Wait {
		active = c.router.Wait
	}
	var resp *pb.LockResponse
	var at lockSession
	err := active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		at = lockSession{node, c.sessions.With(ctx, node)}
		req.Slice, req.Epoch, req.Client, req.Session = uint32(o.Slice()), uint64(epoch), c.cluster.Client(), at.number
		resp, req.Ticket = &pb.LockResponse{}, c.tickets.Of(o).Reached
		body, err := c.cluster.Call(ctx, node, wire.Operation, method.Lock, req, nil, resp)
		body.Release()
		// Where the session has just ended, the next attempt has the new one.
		if fault.Is(err, fault.Expired) || err == nil && resp.Granted && c.sessions.Current(node) != at.number {
			err = fault.E(fault.Again, "cartwheel.lock", string(node), "the session has ended")
		}
		return resp.Refusal, err
	})
	return resp, at, err
}

// GetLock implements mount.Locks.
func (c *Client) GetLock(ctx context.Context, _ mount.Caller, id mount.Inode, _ mount.Handle, l mount.Lock) (mount.Lock, error) {
	o, _, ok := c.nodes.find(id)
	if !ok {
		return mount.Lock{}, staleNode
	}
	out, cancel := c.remotely(ctx)
	defer cancel()
	if err := c.locks.settled(out, o); err != nil {
		return mount.Lock{}, err
	}
	test := func() (*pb.LockResponse, error) {
		resp, _, err := c.askLock(out, o, &pb.LockRequest{Lock: toWire(o, l), Test: true})
		return resp, err
	}
	resp, err := test()
	if err == nil && resp.Conflict != nil && c.locks.soon(out, o, &l) {
		resp, err = test() // the kernel may not have told yet of a close
	}
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
func (c *Client) SetLock(ctx context.Context, _ mount.Caller, id mount.Inode, hid mount.Handle, l mount.Lock, wait bool) error {
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
	if len(c.locks.which(o, func(h *holding) bool { return h.lock.Owner == l.Owner && h.lock.Whole == l.Whole })) == 0 {
		l.Type = mount.Unlock
		c.releaseLater(o, l)
	}
	return fault.E(fault.Interrupted, "cartwheel.SetLock", o.String(), "")
}

func (c *Client) takeLock(ctx context.Context, o ids.Object, hid mount.Handle, l mount.Lock, wait bool) error {
	if err := c.locks.settled(ctx, o); err != nil {
		return err
	}
	for {
		resp, at, err := c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, l), Wait: wait})
		if err == nil && !resp.Granted && c.locks.soon(ctx, o, &l) {
			resp, at, err = c.askLock(ctx, o, &pb.LockRequest{Lock: toWire(o, l)})
		}
		if err != nil {
			return err
		}
		if !resp.Granted {
			return fault.E(fault.Again, "cartwheel.SetLock", o.String(), "")
		}
		c.locks.set(o, hid, l, at)
		if c.sessions.Current(at.node) == at.number {
			break // from here on, the session's end finds it
		}
		undo := l
		undo.Type = mount.Unlock
		c.locks.set(o, 0, undo, lockSession{})
	}
	if !l.Whole {
		c.nodes.lock(o)
	}
	if err := c.catchUp(ctx, o); err != nil {
		// The caller hears that it has no lock, so that it must not have one.
		l.Type = mount.Unlock
		c.releaseLater(o, l)
		return err
	}
	return nil
}
