// Package resolve finds out what names mean: from the cache where a lease covers
// the name, else from the active of its directory. One question may have several
// names of a path. What an answer says is learned by the cache of names under a
// mark that was taken before. The package counts no lookups and knows no kernel.
package resolve

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/prefetch"
	"cartwheel.dev/clients/cartwheel/remembered"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a Resolver. None may be missing.
type Options struct {
	Calls *calls.Sender
	Names *names.Cache
	// Remembered is what an eventual read takes where no node answers in time.
	Remembered *remembered.Table
	Tickets    *tickets.Table
	Deferred   *deferred.Publisher
	Clock      boottime.Func
	// IsFar reports whether the active of a slice is so far away that what may
	// be asked of it next is worth having in advance.
	IsFar func(ids.Slice) bool
	// List reads a whole directory in advance.
	List func(ctx context.Context, who mount.Caller, dir ids.Object)
	// Background runs a function, within the limit of one operation, in a goroutine
	// that the client joins; false: the client ends.
	Background func(func(context.Context)) bool
}

// Resolver finds out what names mean. It is safe for use by many goroutines. Its
// methods may block until a node answers.
type Resolver struct {
	opt   Options
	seen  seen
	below *prefetch.Below
}

// New returns a Resolver that has seen no names.
func New(o Options) *Resolver { return &Resolver{opt: o, below: prefetch.NewBelow(o.Clock)} }

// Dropped hears that names were dropped that no other client changed: those below a
// directory may come along again at once.
func (r *Resolver) Dropped() { r.below.Clear() }

const (
	// eagerAfter is how many names of one directory are asked for one by one
	// before all of it is read.
	eagerAfter = 3
	// removedTries bounds how often a name is asked for again because its object
	// was removed before its attributes came.
	removedTries = 3
)

// list reads and learns a directory. On eventual terms it takes a part of the time, and
// does nothing where the active is away: what a copy says is not kept.
func (r *Resolver) list(ctx context.Context, who mount.Caller, dir ids.Object) {
	if timeouts.Eventual(ctx) && r.opt.Calls.IsAway(dir.Slice()) {
		return
	}
	ctx, over := timeouts.ForOwn(ctx)
	defer over()
	r.opt.List(ctx, who, dir)
}

// Find returns what a name means and the attributes of what it names. Where the
// name is not there, the entry's Object is 0.
func (r *Resolver) Find(ctx context.Context, who mount.Caller, dir ids.Object, name string) (*pb.Attr, names.Entry, error) {
	for try := 0; ; try++ {
		e, _, ok := r.opt.Names.Lookup(dir, name)
		if !ok && try == 0 && r.opt.Names.Misses(dir) >= eagerAfter {
			r.list(ctx, who, dir)
			e, _, ok = r.opt.Names.Lookup(dir, name)
		}
		var err error
		if !ok {
			if e, err = r.one(ctx, who, dir, name); err != nil {
				return nil, e, err
			}
		}
		if timeouts.Eventual(ctx) {
			r.opt.Remembered.NoteEntry(dir, name, e)
		}
		if e.Object == 0 {
			return nil, e, nil
		}
		a, err := r.opt.Calls.Attr(ctx, e.Object)
		if fault.Is(err, fault.Stale) && try < removedTries {
			continue
		}
		return a, e, err
	}
}

// one asks the active of a directory for one name, and learns the answer.
func (r *Resolver) one(ctx context.Context, who mount.Caller, dir ids.Object, name string) (names.Entry, error) {
	if f := r.opt.Deferred.At(dir, name); f != nil {
		_ = r.opt.Deferred.PublishFile(ctx, f) // if it is refused, the name is not there
	}
	met, err := r.all(ctx, who, dir, []string{name})
	if timeouts.Eventual(ctx) && remembered.IsAway(err) {
		if last, ok := r.opt.Remembered.Entry(dir, name); ok {
			return last, nil
		}
	}
	if err != nil {
		return names.Entry{}, err
	}
	return met[0], nil
}

// TakeSeen returns what a name meant when it was resolved last, lease or not, and
// forgets it; 0: not known.
func (r *Resolver) TakeSeen(dir ids.Object, name string) ids.Object { return r.seen.take(dir, name) }
