// Package locks takes, keeps and gives up this client's advisory locks: byte
// ranges and flocks. It claims them from a slice's new active, and finds out
// which were lost with a session. The node's table is the authority; the table
// here says what to give up when a handle closes. The package knows no open
// file: what happens to a file with its locks are functions of the caller.
package locks

import (
	"context"
	"log/slog"
	"time"

	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Sessions are the sessions with nodes, which locks go with.
type Sessions interface {
	// With returns the session with a node, and begins one where there is none.
	With(ctx context.Context, node ids.Node) uint64
	// Current returns the session with a node; 0: there is none.
	Current(node ids.Node) uint64
}

// Options set up a Keeper. None may be missing.
type Options struct {
	// Context ends with the client.
	Context context.Context
	// OpTimeout bounds one operation in the background.
	OpTimeout time.Duration
	Router    *route.Router
	Cluster   *contact.Cluster
	Sessions  Sessions
	Tickets   *tickets.Table
	Logger    *slog.Logger
	Files     Files
	// Spawn runs a function in a goroutine that the client joins when it ends,
	// unless that has begun: then it answers false.
	Spawn func(func()) bool
	// Remotely bounds calls to nodes on behalf of a request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
	// NoteRange notes that a process's byte ranges of a file were locked.
	NoteRange func(ids.Object)
	// IsDirty reports whether bytes of a file are not committed. It is called
	// with the Keeper's lock held.
	IsDirty func(ids.Object) bool
}

// Files is what happens to a file with its locks. Its methods may block.
type Files interface {
	// Publish returns when the active knows the file.
	Publish(ctx context.Context, o ids.Object) error
	// Flush commits what is dirty, and what a crash left behind, for a request.
	Flush(ctx context.Context, o ids.Object) error
	// FlushLate commits what is dirty, for no request. Late says that it failed
	// because nothing got to the nodes for too long.
	FlushLate(o ids.Object) (late bool, err error)
	// CatchUp has the file read as it is now at its active.
	CatchUp(ctx context.Context, o ids.Object) error
}

// Keeper takes, keeps and gives up locks. It is safe for use by many goroutines.
// Its lock guards the table and is held over no call but IsDirty. Errors are
// those of the nodes, Again for a lock that another owner holds, Interrupted
// when a request ends, and LostLock for writes under a lock that was lost.
type Keeper struct {
	opt   Options
	table table
}

// New returns a Keeper that holds no lock.
func New(o Options) *Keeper { return &Keeper{opt: o, table: newTable()} }

// waitLimit bounds how long one may wait for a lock.
const waitLimit = 7 * 24 * time.Hour

// ask sends a request about a lock to the object's active, and says under
// which session it was answered. A request that waits is left with the node.
func (k *Keeper) ask(ctx context.Context, o ids.Object, req *pb.LockRequest) (*pb.LockResponse, lockSession, error) {
	if err := k.opt.Files.Publish(ctx, o); err != nil {
		return nil, lockSession{}, err
	}
	active := k.opt.Router.Active
	if req.Wait {
		active = k.opt.Router.Wait
	}
	var resp *pb.LockResponse
	var at lockSession
	err := active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, epoch ids.Epoch) (*pb.Refusal, error) {
		at = lockSession{node, k.opt.Sessions.With(ctx, node)}
		req.Slice, req.Epoch, req.Client, req.Session = uint32(o.Slice()), uint64(epoch), k.opt.Cluster.Client(), at.number
		resp, req.Ticket = &pb.LockResponse{}, k.opt.Tickets.Of(o).Reached
		body, err := k.opt.Cluster.Call(ctx, node, wire.Operation, method.Lock, req, nil, resp)
		body.Release()
		// Where the session has just ended, the next attempt has the new one.
		if fault.Is(err, fault.Expired) || err == nil && resp.Granted && k.opt.Sessions.Current(node) != at.number {
			err = fault.E(fault.Again, "cartwheel.lock", string(node), "the session has ended")
		}
		return resp.Refusal, err
	})
	return resp, at, err
}

// Get returns a lock on an object that conflicts with l, or one of type Unlock.
func (k *Keeper) Get(ctx context.Context, o ids.Object, l mount.Lock) (mount.Lock, error) {
	out, cancel := k.opt.Remotely(ctx)
	defer cancel()
	if err := k.table.settled(out, o); err != nil {
		return mount.Lock{}, err
	}
	test := func() (*pb.LockResponse, error) {
		resp, _, err := k.ask(out, o, &pb.LockRequest{Lock: toWire(o, l), Test: true})
		return resp, err
	}
	resp, err := test()
	if err == nil && resp.Conflict != nil && k.table.soon(out, o, &l) {
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

// Set takes, changes or gives up a lock on an object through a handle, as
// mount.Locks says. What was written under a lock is committed before it is
// given up, and what others wrote is seen once it is taken.
func (k *Keeper) Set(ctx context.Context, o ids.Object, hid mount.Handle, l mount.Lock, wait bool) error {
	if l.Whole {
		l.Start, l.End = 0, mount.LockEnd
	}
	if l.Type == mount.Unlock {
		return k.unlock(ctx, o, l)
	}
	if !wait {
		out, cancel := k.opt.Remotely(ctx)
		defer cancel()
		return k.take(out, o, hid, l, false)
	}
	out, cancel := context.WithTimeout(k.opt.Context, waitLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := k.take(out, o, hid, l, true)
	if err == nil || ctx.Err() == nil {
		return err
	}
	// It may have been granted at the last moment.
	if len(k.table.which(o, func(h *holding) bool { return h.lock.Owner == l.Owner && h.lock.Whole == l.Whole })) == 0 {
		l.Type = mount.Unlock
		k.releaseLater(o, l)
	}
	return fault.E(fault.Interrupted, "cartwheel.SetLock", o.String(), "")
}

func (k *Keeper) take(ctx context.Context, o ids.Object, hid mount.Handle, l mount.Lock, wait bool) error {
	if err := k.table.settled(ctx, o); err != nil {
		return err
	}
	for {
		resp, at, err := k.ask(ctx, o, &pb.LockRequest{Lock: toWire(o, l), Wait: wait})
		if err == nil && !resp.Granted && k.table.soon(ctx, o, &l) {
			resp, at, err = k.ask(ctx, o, &pb.LockRequest{Lock: toWire(o, l)})
		}
		if err != nil {
			return err
		}
		if !resp.Granted {
			return fault.E(fault.Again, "cartwheel.SetLock", o.String(), "")
		}
		k.table.set(o, hid, l, at)
		if k.opt.Sessions.Current(at.node) == at.number {
			break // from here on, the session's end finds it
		}
		undo := l
		undo.Type = mount.Unlock
		k.table.set(o, 0, undo, lockSession{})
	}
	if !l.Whole {
		k.opt.NoteRange(o)
	}
	if err := k.opt.Files.CatchUp(ctx, o); err != nil {
		// The caller hears that it has no lock, so that it must not have one.
		l.Type = mount.Unlock
		k.releaseLater(o, l)
		return err
	}
	return nil
}
