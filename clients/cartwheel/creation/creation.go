// Package creation makes objects. Where a directory is exclusively this client's,
// it makes files by itself and has them published later. Otherwise the active of the
// directory's slice makes the object and its name in one operation; an object that
// goes to another slice is made first, and named then. The package opens nothing and
// counts no lookups.
package creation

import (
	"context"
	"log/slog"
	"time"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/destination"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a Maker. None may be missing.
type Options struct {
	Calls       *calls.Sender
	Names       *names.Cache
	Deferred    *deferred.Publisher
	Stream      *stream.Stream
	Alone       *alone.Actor
	Destination *destination.Chooser
	Receipts    *receipts.Table
	Cluster     *contact.Cluster
	// Engine returns the content engine, once there are files.
	Engine func() *content.Engine
	// Find returns what a name means and the attributes of what it names.
	Find func(ctx context.Context, who mount.Caller, dir ids.Object, name string) (*pb.Attr, names.Entry, error)
	// Begin notes that an operation on a name of a directory begins; names.Cache.End
	// ends it.
	Begin func(dir ids.Object, name string) names.Mark
	// Made hears that a directory that was reached under cues has a new name.
	Made func(dir ids.Object, cues cue.Set, name string)
	// Doubt forgets objects whose state is not known.
	Doubt func(...ids.Object)
	// HoldFrom is the round trip to the active from which on standbys get files with all
	// of their content too; negative: they never do.
	HoldFrom time.Duration
	// Remotely returns the context for calls on behalf of one request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
	Clock    boottime.Func
	Wall     func() time.Time
	Logger   *slog.Logger
}

// Maker makes objects. It is safe for use by many goroutines. Its methods may block until
// a node answers.
type Maker struct {
	opt   Options
	homes homes
}

// New returns a Maker.
func New(o Options) *Maker { return &Maker{opt: o} }

// Request is a new object on its way.
type Request struct {
	Dir    ids.Object
	Cues   cue.Set
	Name   string
	Who    mount.Caller
	Create *pb.Create
	Body   [][]byte // of the create's commit
	Call   cue.Call
	// held sends it to the standbys of its slice too; nil: not.
	held *route.Held
	// Writes: it is made to be written, so that its close is heard of.
	Writes bool
}

// level is how many acknowledgements are waited for.
func (m *Request) level() uint32 { return m.Cues.Only(m.Call).Sync() }

// Made is what came of a Request.
type Made struct {
	Attr    *pb.Attr
	Existed bool
}

// CheckName refuses names that cannot be made: those of cues are there already.
func CheckName(name string) error {
	const op fault.Op = "creation.CheckName"
	if len(name) > mount.NameMax {
		return fault.E(fault.NameTooLong, op, "", "")
	}
	if _, is, err := cue.Parse(name); err != nil {
		return err
	} else if is {
		return fault.E(fault.Exists, op, name, "is a cue")
	}
	return nil
}

// Make makes an object with a name: in one operation where it goes to its
// directory's slice, else the object first and then the name.
func (k *Maker) Make(ctx context.Context, m Request) (Made, error) {
	if err := CheckName(m.Name); err != nil {
		return Made{}, err
	}
	eventual := timeouts.Eventual(ctx)
	switch {
	case eventual: // others at this side of a cut are to see it
	case m.Writes:
		if here, ok := k.exclusive(&m); ok {
			return here, nil
		}
	default:
		if here, ok := k.other(ctx, &m); ok {
			return here, nil
		}
	}
	out, cancel := k.opt.Remotely(ctx)
	defer cancel()
	dir, err := k.opt.Calls.Attr(out, m.Dir)
	if err != nil {
		return Made{}, err
	}
	own := m.Cues.Only(m.Call).Persistent()
	m.Create.Cues, m.Create.Dir, m.Create.Name, m.Create.Umask = own, uint64(m.Dir), []byte(m.Name), m.Who.Umask
	if !eventual {
		return k.placed(out, m, dir, own)
	}
	if !k.opt.Calls.IsAway(m.Dir.Slice()) {
		res, err, done := k.elsewhere(out, m, dir, own)
		if done {
			return res, err
		}
	}
	// At the side it goes where its directory is, whatever the cues say.
	return k.makeIn(out, m, dir, m.Dir.Slice())
}

// elsewhere makes an object on eventual terms in another slice than its directory's,
// where its place is there and that slice answers within a part of the time. What
// belongs into the directory's slice is left to the caller, which has all of the time
// for it: an attempt that ends early may have been done.
func (k *Maker) elsewhere(ctx context.Context, m Request, dir *pb.Attr, own *pb.Cues) (res Made, err error, done bool) {
	part, over := timeouts.Part(ctx, 3)
	defer over()
	if s, err := k.opt.Destination.Choose(part, dir, own); err == nil && s == m.Dir.Slice() {
		return Made{}, nil, false
	}
	res, err = k.placed(part, m, dir, own)
	return res, err, err == nil || !route.MayComeLater(err) || ctx.Err() != nil
}

// placed makes an object in the slice that its place is in.
func (k *Maker) placed(out context.Context, m Request, dir *pb.Attr, own *pb.Cues) (Made, error) {
	const op fault.Op = "creation.placed"
	for try := 0; ; try++ {
		slice, err := k.opt.Destination.Choose(out, dir, own)
		if fault.Is(err, fault.Again) {
			if k.opt.Destination.Pause(out, try) {
				continue
			}
			err = fault.Wrap(fault.TimedOut, op, m.Name, err)
		}
		if err != nil {
			return Made{}, err
		}
		res, err := k.makeIn(out, m, dir, slice)
		if !fault.Is(err, fault.Closed) || calls.IsUnknown(err) {
			return res, err
		}
		k.opt.Destination.Close(out, slice)
		if !k.opt.Destination.Pause(out, try) {
			return Made{}, fault.Wrap(fault.TimedOut, op, m.Name, err)
		}
	}
}

// makeIn makes an object in a slice, as its caller.
func (k *Maker) makeIn(ctx context.Context, m Request, dir *pb.Attr, slice ids.Slice) (res Made, err error) {
	err = as(m.Who, m.Create.Mode, func(p *pb.Principal) (err error) {
		if slice == m.Dir.Slice() {
			res, err = k.here(ctx, m, p)
		} else {
			res, err = k.apart(ctx, m, p, dir, slice)
		}
		return err
	})
	return res, err
}

// as runs fn as a caller. Whether set-gid stands depends on the groups.
func as(who mount.Caller, mode uint32, fn func(*pb.Principal) error) error {
	if mode&mount.SetGID != 0 {
		return fn(calls.WithGroups(who))
	}
	return calls.AsCaller(who, fn)
}

// here makes object and name in one operation.
func (k *Maker) here(ctx context.Context, m Request, p *pb.Principal) (Made, error) {
	mark := k.opt.Begin(m.Dir, m.Name)
	defer k.opt.Names.End(&mark)
	if m.held == nil {
		k.opt.Deferred.Want(m.Create, m.Dir.Slice())
	}
	resp, by, err := k.opt.Calls.Operate(ctx, calls.Operation{Slice: m.Dir.Slice(), Principal: p, Level: m.level(), Body: m.Body, Held: m.held,
		Op: &pb.Operation{Op: &pb.Operation_Create{Create: m.Create}}})
	if err != nil {
		if calls.IsUnknown(err) {
			k.opt.Doubt(m.Dir)
		}
		return Made{}, err
	}
	if resp.Early {
		k.opt.Names.Learn(&mark, by, nil, func(l *names.Learner) {
			l.Changed(m.Dir)
			l.Unknown(m.Dir, m.Name)
		})
		k.opt.Made(m.Dir, m.Cues, m.Name)
		return Made{}, nil
	}
	r := resp.Result
	k.opt.Deferred.Got(r)
	if r.Attr == nil || r.Attr.Object == 0 {
		return Made{}, fault.E(fault.Corrupt, "creation.here", m.Name, "the answer has no object")
	}
	o := ids.Object(r.Attr.Object)
	if timeouts.Eventual(ctx) {
		k.opt.Calls.NoteName(m.Dir, m.Name, o)
	}
	res := Made{Attr: r.Attr, Existed: r.Existed}
	whole := !r.Existed || o.Slice() == m.Dir.Slice()
	k.opt.Names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
		l.Attr(r.Dir, false)
		if whole {
			l.Attr(r.Attr, !r.Existed)
		}
		l.Entry(m.Dir, m.Name, names.Entry{Object: o, Type: r.Attr.Mode & mount.TypeMask})
		if !r.Existed && r.Attr.Mode&mount.TypeMask == mount.TypeDir {
			l.Complete(o)
		}
	})
	k.opt.Receipts.Note(o, resp.Receipt)
	k.opt.Made(m.Dir, m.Cues, m.Name)
	if !whole {
		res.Attr, err = k.opt.Calls.Attr(ctx, o)
	}
	return res, err
}
