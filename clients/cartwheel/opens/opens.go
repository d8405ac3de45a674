// Package opens does what an open of a file needs before it is answered, and what
// else needs the current version of one: it has the writes of a crash decided
// about, asks the active where no lease is good enough, makes the engine's handle,
// and fills the kernel's pages of small files. Which files are open is kept by
// inodes; an open is counted there before this package is asked for attributes, so
// that a revocation in between is not missed. The package keeps nothing.
package opens

import (
	"context"
	"strings"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/prefetch"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up an Opener. None may be missing.
type Options struct {
	Calls    *calls.Sender
	Names    *names.Cache
	Nodes    *inodes.Table
	Kernel   *inodes.Kernel
	Deferred *deferred.Publisher
	Ahead    *prefetch.Files
	Cluster  *contact.Cluster
	Limits   *timeouts.Limits
	// Engine returns the content engine, once there are files.
	Engine func() *content.Engine
	// AwaitRecovery returns when it is decided what becomes of the writes that a
	// crash left of an object.
	AwaitRecovery func(context.Context, ids.Object) error
	// IsContentNear reports whether the node that is asked for a slice's content is
	// near.
	IsContentNear func(ids.Slice) bool
}

// Opener prepares opens. It has no state and is safe for use by many goroutines. Its
// methods may block until a node answers.
type Opener struct{ opt Options }

// New returns an Opener.
func New(o Options) *Opener { return &Opener{opt: o} }

// tries bounds how often attributes are asked for again because a commit of this
// client overtook them. Behind that, the file is read as the commit left it, but
// not by the kernel ahead.
const tries = 3

// Attr returns attributes with Content. The active has heard of the open then, or
// gave a lease on the file itself: before the last name goes, it asks whether the
// file is open here.
func (p *Opener) Attr(ctx context.Context, o ids.Object, hold content.Hold) (*pb.Attr, error) {
	if err := p.opt.AwaitRecovery(ctx, o); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		a, err := p.attr(ctx, o)
		if err != nil || !hold.Outdated(a) || try == tries {
			return a, err
		}
	}
}

// attr is one attempt of Attr.
func (p *Opener) attr(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	if p.opt.Deferred.Of(o) != nil {
		if a, _, ok := p.opt.Names.Attr(o); ok {
			return a, nil
		}
	}
	p.opt.Ahead.Await(ctx, o)
	if a, ok := p.opt.Names.Own(o); ok && (a.Content != nil || a.Size == 0 || a.Mode&mount.TypeMask != mount.TypeRegular) {
		p.opt.Ahead.OpenedKnown(o)
		return a, nil
	}
	p.opt.Ahead.OpenedUnknown(o)
	return p.opt.Calls.Fetch(ctx, o, calls.Wanted{Content: true, Opening: true})
}

// Handle makes the engine's handle of a file whose current attributes are known, and
// returns as whom its writes are committed.
func (p *Opener) Handle(who mount.Caller, b *inodes.Opening, a *pb.Attr, flags mount.OpenFlags, cues cue.Set) (*content.Handle, *calls.Writer) {
	w := &calls.Writer{Principal: p.principal(who, flags), Level: cues.Only(cue.Write).Sync(), Terms: cues.Only(cue.Write).Terms()}
	how := content.Open{As: w, ClearSetID: who.UID != 0, Shared: cues.Only(cue.Read).Has(cue.Hotspot)}
	if flags.Writes() {
		how.Name = func() string { return p.Path(b) }
	}
	if flags.Writes() && p.opt.Engine().Journals() {
		how.Who = calls.Encode(how)
	}
	return p.opt.Engine().Open(b.Object, a, how), w
}

// principal is the user as whom a handle's commits act.
func (p *Opener) principal(who mount.Caller, flags mount.OpenFlags) *pb.Principal {
	if !flags.Writes() {
		return calls.Principal(who)
	}
	if w := p.opt.Cluster.Who(); w != nil && w.Trusted {
		return calls.Principal(who) // what it may write, its kernel checked
	}
	return calls.WithGroups(who)
}

// Path returns what a person may know an open file by.
func (p *Opener) Path(b *inodes.Opening) string {
	if b.Name == "" {
		return p.opt.Names.Path(b.Object)
	}
	return strings.TrimSuffix(p.opt.Names.Path(b.Dir), "/") + "/" + b.Name
}
