package deferred

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

// Publish returns when an object's active knows it, and what was done here to it
// and to its names.
func (p *Publisher) Publish(ctx context.Context, o ids.Object) error {
	if f := p.Of(o); f != nil {
		if err := p.PublishFile(ctx, f); err != nil {
			return err
		}
	}
	return p.opt.Stream.Flush(ctx, o)
}

// PublishFile returns when a file's active knows it, or refused it.
func (p *Publisher) PublishFile(ctx context.Context, f *pending.File) error {
	if f.Lazy { // what was written goes along, and publishes it
		if err := p.opt.FlushContent(ctx, f.Object); err != nil && ctx.Err() != nil {
			return err
		}
	}
	if p.Claim(f) && !p.opt.Spawn(func() {
		// The caller may give up waiting. The file is told all the same.
		known, cancel := p.opt.UntilKnown(ctx)
		defer cancel()
		_, _ = p.PublishClaimed(known, f, nil) // the waits for the file return it
	}) {
		p.Release(f)
		return fault.E(fault.Closed, "deferred.PublishFile", f.Name, "the mount has ended")
	}
	return f.Wait(ctx)
}

// PublishAll returns when the actives know all files that a condition holds for,
// or refused them, and then why they refused one. The close of that file returns
// it too.
func (p *Publisher) PublishAll(ctx context.Context, which func(*pending.File) bool) error {
	files := p.Which(which)
	if len(files) == 0 {
		return nil
	}
	for _, f := range files {
		if f.Lazy {
			p.opt.SendContent(f.Object)
		}
	}
	failed := make([]error, len(files))
	slots := make(chan struct{}, publishAtOnce)
	var group sync.WaitGroup
	for i, f := range files {
		slots <- struct{}{}
		group.Go(func() {
			failed[i] = p.PublishFile(ctx, f)
			<-slots
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// PublishDir is PublishAll for the files of a directory, and returns when its
// active knows what else was done here to its names.
func (p *Publisher) PublishDir(ctx context.Context, dir ids.Object) error {
	err := p.PublishAll(ctx, func(f *pending.File) bool { return f.Dir == dir })
	return errors.Join(err, p.opt.Stream.Flush(ctx, dir))
}

// PublishEverything is PublishAll for every file, and returns when the actives know
// what else was done here.
func (p *Publisher) PublishEverything(ctx context.Context) error {
	err := p.PublishAll(ctx, Every)
	p.opt.Stream.FlushAll(ctx)
	return err
}

// FlushNames returns when the actives know what was done here to names, but for
// files that were made.
func (p *Publisher) FlushNames(ctx context.Context) { p.opt.Stream.FlushAll(ctx) }

// Every holds for every file.
func Every(*pending.File) bool { return true }

// PublishFor tells an active what an operation depends on that it does not know.
// What it refuses, the operation then does not find.
func (p *Publisher) PublishFor(ctx context.Context, op *pb.Operation) {
	p.flushFor(ctx, op)
	if p.Len() == 0 {
		return
	}
	object := func(id uint64) { _ = p.Publish(ctx, ids.Object(id)) }
	name := func(dir uint64, name []byte) {
		if f := p.At(ids.Object(dir), string(name)); f != nil {
			_ = p.PublishFile(ctx, f)
		}
	}
	inside := func(dir uint64, name []byte) { // what is removed must be seen not to be empty
		if e, _, ok := p.opt.Names.Lookup(ids.Object(dir), string(name)); ok && e.Type == mount.TypeDir {
			_ = p.PublishDir(ctx, e.Object)
		}
	}
	switch op := op.Op.(type) {
	case *pb.Operation_Create:
		name(op.Create.Dir, op.Create.Name)
	case *pb.Operation_LinkName:
		name(op.LinkName.Dir, op.LinkName.Name)
	case *pb.Operation_Link:
		object(op.Link.Object)
		name(op.Link.Dir, op.Link.Name)
	case *pb.Operation_Unlink:
		name(op.Unlink.Dir, op.Unlink.Name)
		if op.Unlink.Directory {
			inside(op.Unlink.Dir, op.Unlink.Name)
		}
	case *pb.Operation_Rename:
		name(op.Rename.Dir, op.Rename.Name)
		name(op.Rename.NewDir, op.Rename.NewName)
		inside(op.Rename.NewDir, op.Rename.NewName)
	case *pb.Operation_SetAttr:
		object(op.SetAttr.Object)
		_ = p.PublishDir(ctx, ids.Object(op.SetAttr.Object))
	case *pb.Operation_SetXattr:
		object(op.SetXattr.Object)
		_ = p.PublishDir(ctx, ids.Object(op.SetXattr.Object))
	case *pb.Operation_Hold:
		object(op.Hold.Object)
	}
}

// flushFor tells the actives of an operation's objects what was done here before it:
// all of that in their slices, so that a crash leaves nothing out that came first.
func (p *Publisher) flushFor(ctx context.Context, op *pb.Operation) {
	if p.opt.Stream.Len() == 0 {
		return
	}
	for _, o := range method.Names(op) {
		_ = p.opt.Stream.FlushSlice(ctx, ids.Object(o).Slice()) // the operation's own wait ends as well
	}
	if o := p.victim(op); o != 0 { // names may have been removed in it just now
		_ = p.opt.Stream.FlushSlice(ctx, o.Slice())
	}
}

// victim returns the object whose name an operation removes or replaces, as far as that is
// known here; 0: it is not.
func (p *Publisher) victim(op *pb.Operation) ids.Object {
	var dir, known uint64
	var name []byte
	switch {
	case op.GetUnlink() != nil:
		dir, name, known = op.GetUnlink().Dir, op.GetUnlink().Name, op.GetUnlink().Object
	case op.GetRename() != nil:
		dir, name, known = op.GetRename().NewDir, op.GetRename().NewName, op.GetRename().Target
	}
	if e, _, ok := p.opt.Names.Lookup(ids.Object(dir), string(name)); ok && known == 0 {
		return e.Object
	}
	return ids.Object(known)
}

// PublishOld tells actives of files that stay open, until the Client ends.
func (p *Publisher) PublishOld() {
	tick := time.NewTicker(publishAfter / 4)
	defer tick.Stop()
	for {
		select {
		case <-p.opt.Context.Done():
			return
		case <-tick.C:
			before := p.opt.Clock() - publishAfter
			if old := p.Which(func(f *pending.File) bool { return f.Since < before }); len(old) > 0 {
				p.opt.Background(func(ctx context.Context) {
					_ = p.PublishAll(ctx, func(f *pending.File) bool { return f.Since < before }) // their closes tell
				})
			}
		}
	}
}

// PublishSoon tells actives of the files that a condition holds for, and of what
// else was done here to names of directories, in the background; then runs when
// that is done.
func (p *Publisher) PublishSoon(which func(*pending.File) bool, dirs []ids.Object, then func()) {
	if len(p.Which(which)) == 0 && !slices.ContainsFunc(dirs, p.opt.Stream.Touches) || !p.opt.Background(func(ctx context.Context) {
		_ = p.PublishAll(ctx, which)         // their closes tell
		_ = p.opt.Stream.Flush(ctx, dirs...) // ends with the client
		then()
	}) {
		then()
	}
}
