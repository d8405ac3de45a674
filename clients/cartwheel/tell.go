package cartwheel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// tell tells a claimed file's active of it, with its first content if commit is
// not nil. Where somebody else has made the name meanwhile, which takes that
// the lease was lost, the file is kept under another name and the error says so.
func (c *Client) tell(ctx context.Context, f *pending.File, commit *content.Commit) (*pb.Result, error) {
	resp, by, mark, err := c.tellAs(ctx, f, f.Name, commit)
	if fault.Is(err, fault.Missing) && !unknown(err) {
		c.alone.table.Release(f) // the engine sends the chunks again
		return nil, err
	}
	refused := err
	if fault.Is(err, fault.Exists) && !unknown(err) {
		name := conflictName(f)
		if resp, by, mark, err = c.tellAs(ctx, f, name, commit); err == nil {
			c.opt.Logger.Warn("somebody else made a file of the same name while this client was cut off: both are kept", "name", f.Name, "copy", name)
		}
	}
	if err == nil {
		c.arrived.Add(1)
		r := resp.Result
		old, _, known := c.names.Attr(f.Object)
		c.got(r)
		c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, true)
		})
		if known && r.Attr != nil {
			c.nodes.AdvancePages(f.Object, old.Version, r.Attr.Version)
		}
		c.receipts.Note(f.Object, resp.Receipt)
		c.engine.Told(f.Object, f.Journal, r.Attr.GetVersion())
	}
	if refused != nil {
		c.refuse(f, refused, commit == nil)
	}
	c.alone.table.Finish(f, refused)
	if refused != nil {
		return nil, refused
	}
	return resp.Result, nil
}

// tellAs sends the create under a name.
func (c *Client) tellAs(ctx context.Context, f *pending.File, name string, commit *content.Commit) (*pb.OperateResponse, ids.Node, names.Mark, error) {
	o := operation{slice: f.Object.Slice(), p: f.Principal, level: f.Level, first: f}
	was := f.Create
	create := &pb.Create{Dir: was.Dir, Name: []byte(name), Mode: was.Mode, Umask: was.Umask, Exclusive: true, Open: true, Object: was.Object, MadeNs: was.MadeNs}
	c.want(create, o.slice)
	if commit != nil {
		s := commit.Splice
		// Appends to a new file begin at its start.
		create.Commit = &pb.Commit{Extents: s.Extents, Size: s.Size, Extend: s.Extend, MtimeNs: s.MtimeNs, ClearSetid: s.ClearSetid}
		o.body = commit.Body
		if how, _ := commit.As.(*as); how != nil {
			o.level = how.level
		}
	}
	o.op = &pb.Operation{Op: &pb.Operation_Create{Create: create}}
	mark := c.names.MarkNew(f.Dir, f.Object)
	resp, by, err := c.operate(ctx, o)
	return resp, by, mark, err
}

// conflictName is the name of a file whose own name was taken.
func conflictName(f *pending.File) string {
	suffix := fmt.Sprintf(".conflict-%x", uint64(f.Object))
	return f.Name[:min(len(f.Name), mount.NameMax-len(suffix))] + suffix
}

// refuse takes back what programs were told of a file; its next close says why,
// unless the engine does.
func (c *Client) refuse(f *pending.File, err error, note bool) {
	c.opt.Logger.Warn("a new file could not be told to its active", "name", f.Name, "object", f.Object.String(), "err", err)
	c.alone.sober.Store(int64(c.opt.BootTime() + soberFor))
	c.names.Unmake(f.Dir, f.Name, f.Object)
	c.doubt(f.Dir, f.Object)
	if note {
		c.alone.mu.Lock()
		if len(c.alone.refused) < pending.MaxFiles {
			c.alone.refused[f.Object] = err
		}
		c.alone.mu.Unlock()
	}
	if !unknown(err) {
		c.engine.Told(f.Object, f.Journal, 0)
	}
}

// settle returns when an object's active knows it.
func (c *Client) settle(ctx context.Context, o ids.Object) error {
	if f := c.alone.table.Of(o); f != nil {
		return c.settleFile(ctx, f)
	}
	return nil
}

func (c *Client) settleFile(ctx context.Context, f *pending.File) error {
	if c.alone.table.Claim(f) && !c.spawn(func() {
		// The caller may give up waiting. The file is told all the same.
		known, cancel := c.limits.UntilKnown(ctx)
		defer cancel()
		_, _ = c.tell(known, f, nil) // those who wait hear of it
	}) {
		c.alone.table.Release(f)
		return fault.E(fault.Closed, "cartwheel.settle", f.Name, "the mount has ended")
	}
	return f.Wait(ctx)
}

// settleAll returns when the actives know all files that a condition holds for,
// or refused them, and then why they refused one. Whoever closes it hears of it
// too.
func (c *Client) settleAll(ctx context.Context, which func(*pending.File) bool) error {
	files := c.alone.table.Which(which)
	if len(files) == 0 {
		return nil
	}
	failed := make([]error, len(files))
	slots := make(chan struct{}, tellAtOnce)
	var group sync.WaitGroup
	for i, f := range files {
		slots <- struct{}{}
		group.Go(func() {
			failed[i] = c.settleFile(ctx, f)
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

// settleDir is settleAll for the files of a directory.
func (c *Client) settleDir(ctx context.Context, dir ids.Object) error {
	return c.settleAll(ctx, func(f *pending.File) bool { return f.Dir == dir })
}

func every(*pending.File) bool { return true }

// settleFor tells an active what an operation depends on that it does not know.
// What it refuses, the operation then does not find.
func (c *Client) settleFor(ctx context.Context, o *operation) {
	if o.first != nil || c.alone.table.Len() == 0 {
		return
	}
	object := func(id uint64) { _ = c.settle(ctx, ids.Object(id)) }
	name := func(dir uint64, name []byte) {
		if f := c.alone.table.At(ids.Object(dir), string(name)); f != nil {
			_ = c.settleFile(ctx, f)
		}
	}
	inside := func(dir uint64, name []byte) { // what is removed must be seen not to be empty
		if e, _, ok := c.names.Lookup(ids.Object(dir), string(name)); ok && e.Type == mount.TypeDir {
			_ = c.settleDir(ctx, e.Object)
		}
	}
	switch op := o.op.Op.(type) {
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
		_ = c.settleDir(ctx, ids.Object(op.SetAttr.Object))
	case *pb.Operation_SetXattr:
		object(op.SetXattr.Object)
		_ = c.settleDir(ctx, ids.Object(op.SetXattr.Object))
	case *pb.Operation_Hold:
		object(op.Hold.Object)
	}
}

// tellOld tells actives of files that stay open, until the Client ends.
func (c *Client) tellOld() {
	tick := time.NewTicker(tellAfter / 4)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			before := c.opt.BootTime() - tellAfter
			if old := c.alone.table.Which(func(f *pending.File) bool { return f.Since < before }); len(old) > 0 {
				c.background(func(ctx context.Context) {
					_ = c.settleAll(ctx, func(f *pending.File) bool { return f.Since < before }) // their closes tell
				})
			}
		}
	}
}

// tellSoon tells actives of the files that a condition holds for, in the
// background; then runs when that is done.
func (c *Client) tellSoon(which func(*pending.File) bool, then func()) {
	if len(c.alone.table.Which(which)) == 0 || !c.background(func(ctx context.Context) {
		_ = c.settleAll(ctx, which) // their closes tell
		then()
	}) {
		then()
	}
}
