package opens

import (
	"context"
	"sync/atomic"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Flush commits what is dirty of an object before something is done to it, and
// what a crash left of it.
func (p *Opener) Flush(ctx context.Context, o ids.Object) error {
	if err := p.opt.AwaitRecovery(ctx, o); err != nil {
		return err
	}
	slow, done := p.opt.Limits.Patiently(ctx)
	defer done()
	return p.opt.Engine().FlushObject(slow, o)
}

// Settle has a file's content committed before it gets a name on eventual terms: a
// close there may have ended before that, and others would see the name without the
// content. Of another one, and of object 0, it does nothing.
func (p *Opener) Settle(ctx context.Context, o ids.Object) error {
	if o == 0 || !timeouts.Eventual(ctx) {
		return nil
	}
	return p.Flush(ctx, o)
}

// Truncate takes all content away from a file.
func (p *Opener) Truncate(ctx context.Context, who mount.Caller, o ids.Object, cues cue.Set) (*pb.Attr, error) {
	var zero uint64
	var a *pb.Attr
	if err := p.Flush(ctx, o); err != nil {
		return nil, err
	}
	ctx, cancel := p.opt.Limits.Remotely(ctx)
	defer cancel()
	err := calls.AsCaller(who, func(by *pb.Principal) (err error) {
		a, err = p.opt.Calls.Change(ctx, o, calls.Operation{Principal: by, Level: cues.Only(cue.Open).Sync(), Op: &pb.Operation{
			Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(o), Size: &zero}}}})
		return err
	})
	if err == nil {
		p.opt.Engine().SetVersion(a)
	}
	return a, err
}

// DropSetID takes the set-id bits away from a file that a handle is about to change
// for a caller without privilege. Commits do that too, but they come later, and not
// at all where room is reserved that is there already. The kernel leaves it to its
// file system. asked is the handle's, and says whether the attributes were asked for
// once: they are not at each write, because its commit takes the bits away.
func (p *Opener) DropSetID(ctx context.Context, o ids.Object, w *calls.Writer, asked *atomic.Bool) error {
	a, _, known := p.opt.Names.Attr(o)
	if !known {
		if asked.Swap(true) {
			return nil
		}
		var err error
		if a, err = p.opt.Calls.Fetch(ctx, o, calls.Wanted{Content: true}); err != nil {
			return err
		}
	}
	if !dropsSetID(a.Mode) {
		return nil
	}
	if err := p.opt.Deferred.Publish(ctx, o); err != nil {
		return err
	}
	a, err := p.opt.Calls.Change(ctx, o, calls.Operation{Principal: w.Principal, Level: w.Level, Op: &pb.Operation{Op: &pb.Operation_Commit{
		Commit: &pb.Commit{Object: uint64(o), ClearSetid: true, KeepTimes: true}}}})
	if err == nil {
		p.opt.Engine().SetVersion(a)
	}
	return err
}

// dropsSetID reports whether a change of content takes bits of a mode away.
// Set-gid without the group's right to run it is no group to run as.
func dropsSetID(mode uint32) bool {
	return mode&mount.SetUID != 0 || mode&mount.SetGID != 0 && mode&0o010 != 0
}

// CatchUp has a file read as it is now at its active, in the engine and in the
// kernel: what was written elsewhere before a lock was granted is seen under it.
// A lease on the attributes is not enough. They may have come later than the
// version that is open, and the kernel may not know of the last revocation yet.
func (p *Opener) CatchUp(ctx context.Context, o ids.Object) error {
	a, _, ok := p.opt.Names.Attr(o)
	if !ok {
		var err error
		if a, err = p.opt.Calls.Fetch(ctx, o, calls.Wanted{Content: true}); err != nil {
			return err
		}
	}
	p.opt.Engine().SetVersion(a)
	// The kernel forgets the size in any case. It ignores a revocation of a file
	// that it does not know yet, because the answer to its first lookup is on its
	// way; that answer may hold an old size.
	done := make(chan struct{})
	p.opt.Kernel.TellInFull(inodes.Plain(o), p.opt.Nodes.SetPages(o, a.Version), func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Interrupted, "opens.CatchUp", o.String(), ctx.Err())
	}
}
