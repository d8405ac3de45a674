// Package holds follows the files that lose a name while they are open here, or
// may be in a moment. Their actives hold such files for this client, so that they
// can be read and written on. When the last handle is closed, the package tells the
// active so, in the background. Which files are open is kept by inodes. A Releaser
// sends no removal; its caller does that.
package holds

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

// releasedAtOnce is how many files are released at the same time: a process that
// ends may close ten thousand removed files.
const releasedAtOnce = 64

// Engine is what of the content engine is needed here.
type Engine interface {
	// Discard drops what is dirty of an object that is gone.
	Discard(o ids.Object)
	// Send sends what is dirty of an object.
	Send(o ids.Object)
}

// Calls asks actives; a *calls.Sender is one.
type Calls interface {
	Attr(ctx context.Context, o ids.Object) (*pb.Attr, error)
	Operate(ctx context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error)
}

var (
	_ Engine = (*content.Engine)(nil)
	_ Calls  = (*calls.Sender)(nil)
)

// Options set up a Releaser. None may be missing.
type Options struct {
	Context   context.Context // ends with the client
	OpTimeout time.Duration
	Clock     boottime.Func
	Calls     Calls
	// Client is the number of this process.
	Client func() uint64
	Names  *names.Cache
	Nodes  *inodes.Table
	// Engine returns the content engine, once there are files.
	Engine func() Engine
	// LastClosed hears that no open of a file is left, under the mutex of Nodes.
	LastClosed func(ids.Object)
	// Spawn and Background run a function in a goroutine that the client joins,
	// Background within the limit of one operation.
	Spawn      func(func()) bool
	Background func(func(context.Context)) bool
	Logger     *slog.Logger
}

// Releaser has actives release what they hold. It is safe for use by many
// goroutines; its mutex is held over no call.
type Releaser struct {
	opt Options

	mu      sync.Mutex // guards below
	waiting []inodes.Leaving
	// working is the number of goroutines that release. There is at least one where
	// a file waits, and at most releasedAtOnce.
	working int
}

// New returns a Releaser with nothing to release.
func New(o Options) *Releaser { return &Releaser{opt: o} }

// IsRemoved reports whether an object is known to have no name. No other process
// will open it, so that a close need not wait until its writes are at the nodes.
func (r *Releaser) IsRemoved(o ids.Object) bool {
	if !r.opt.Nodes.IsHeld(o) {
		return false
	}
	a, _, ok := r.opt.Names.Attr(o)
	return ok && a.Nlink == 0
}

// EndOpen ends what inodes.Table.BeginOpen counted: the file was closed, or never
// opened. Where isLast is true, the caller is to pass l to Release.
func (r *Releaser) EndOpen(o ids.Object, flags mount.OpenFlags) (l inodes.Leaving, isLast bool) {
	l, isLast = r.opt.Nodes.EndOpen(o, flags, func() { r.opt.LastClosed(o) })
	if isLast {
		r.opt.Names.Forget(o)
	}
	return l, isLast
}

// EndLingering releases the files that were looked up, may have lost their last
// name, and were not opened.
func (r *Releaser) EndLingering() {
	list := r.opt.Nodes.Lingered(r.opt.Clock())
	if len(list) == 0 {
		return
	}
	r.opt.Background(func(ctx context.Context) {
		for _, l := range list {
			if a, err := r.opt.Calls.Attr(ctx, l.Object); err == nil && a.Nlink == 0 {
				r.opt.Names.Forget(l.Object)
				r.Release(l)
			} else {
				l.End()
			}
		}
	})
}

// Release tells a file's active, in the background, that it is no longer open
// here. If that fails, the end of the session does it.
func (r *Releaser) Release(l inodes.Leaving) {
	r.mu.Lock()
	r.waiting = append(r.waiting, l)
	more := r.working < releasedAtOnce
	if more {
		r.working++
	}
	r.mu.Unlock()
	if more {
		r.opt.Spawn(r.releaseAll)
	}
}

// releaseAll releases files until none waits.
func (r *Releaser) releaseAll() {
	for l, ok := r.next(); ok; l, ok = r.next() {
		r.releaseOne(l.Object)
		l.End()
	}
}

// next takes the file that has waited longest. Without one, the goroutine that
// asks must end.
func (r *Releaser) next() (l inodes.Leaving, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.waiting = nil
		r.working--
		return l, false
	}
	l = r.waiting[0]
	r.waiting = r.waiting[1:]
	return l, true
}

// releaseOne releases a file. What is dirty of it here is sent if the object
// stays, because another client has it open or it has a name after all.
func (r *Releaser) releaseOne(o ids.Object) {
	ctx, cancel := context.WithTimeout(r.opt.Context, r.opt.OpTimeout)
	defer cancel()
	resp, _, err := r.opt.Calls.Operate(ctx, calls.Operation{Slice: o.Slice(), Principal: &pb.Principal{}, Op: &pb.Operation{
		Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: r.opt.Client(), Release: true}}}})
	if err != nil && r.opt.Context.Err() == nil {
		r.opt.Logger.Info("a removed file could not be let go of; the session's end will", logattr.Object(o), logattr.Err(err))
	}
	if err == nil && !resp.Result.Existed {
		r.opt.Engine().Discard(o)
		return
	}
	r.opt.Engine().Send(o)
}
