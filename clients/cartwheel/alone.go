package cartwheel

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/wire/pb"
)

// Files made in a directory that is this client's alone are made here, with an
// ID that the slice's active gave in advance. Their active hears of them with
// their first content, in one operation, at the latest when they are closed,
// when the directory stops being ours, or after tellAfter. Whatever else is
// asked of their active about them or their directory tells it first.

const (
	// tellAfter is how long a file that stays open is kept from its active.
	tellAfter = time.Second
	// tellAtOnce bounds the files that are told at the same time.
	tellAtOnce = 64
	// reserve is how many IDs are asked for where fewer than reserveBelow are
	// left; the operations under way meanwhile use those.
	reserve, reserveBelow = 1024, 256
	// soberFor is for how long files are made at their active, so that programs
	// hear of it when they open them, after one was refused.
	soberFor = 5 * time.Second
)

// made files and those whose active refused them.
type aloneness struct {
	table *pending.Table
	sober atomic.Int64 // boot time until which nothing is made here

	mu      sync.Mutex // guards refused
	refused map[geoconfig.ObjectID]error
}

func (a *aloneness) init() {
	a.table, a.refused = pending.New(), map[geoconfig.ObjectID]error{}
}

// Pending is how many files were made here that their actives have not heard of.
func (c *Client) Pending() int { return c.alone.table.Len() }

// take returns why an object's active refused it, once.
func (a *aloneness) take(o geoconfig.ObjectID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.refused[o]
	delete(a.refused, o)
	return err
}

// want has a create ask for what later ones need to be made here.
func (c *Client) want(create *pb.Create, s geoconfig.SliceID) {
	create.Alone = true
	if c.alone.table.Left(s) < reserveBelow {
		create.Reserve = reserve
	}
}

// got takes the IDs that came with an answer.
func (c *Client) got(r *pb.Result) { c.alone.table.Give(geoconfig.ObjectID(r.First), r.Numbers) }

// makeAlone makes a file here, if its directory is ours alone, the name is known
// to be free, and nothing about it is for its active to decide.
func (c *Client) makeAlone(m *making) (made, bool) {
	const special = mount.SetUID | mount.SetGID
	if _, ok := c.names.Alone(m.dir, m.name); !ok || !m.cues.Empty() || m.create.Mode&special != 0 || checkNew(m.name) != nil {
		return made{}, false
	}
	now := c.boot()
	dir, _, ok := c.names.Attr(m.dir)
	if !ok || dir.HasAcl || dir.Nlink == 0 || c.alone.sober.Load() > int64(now) || !c.staysHere(dir) {
		return made{}, false
	}
	p, ok := c.maker(dir, m.who)
	if !ok {
		return made{}, false
	}
	o, ok := c.alone.table.ID(m.dir.Slice())
	if !ok {
		return made{}, false
	}
	wall := c.opt.Now().UnixNano()
	f := &pending.File{Object: o, Dir: m.dir, Name: m.name, Principal: p, Level: m.level(), Since: now, Create: &pb.Create{
		Dir: uint64(m.dir), Name: []byte(m.name), Mode: m.create.Mode, Umask: m.who.Umask, Exclusive: true, Open: true,
		Object: uint64(o), MadeNs: wall,
	}}
	a := &pb.Attr{
		Object: uint64(o), Mode: m.create.Mode &^ (m.who.Umask & 0o777), Uid: p.Uid, Gid: p.Gid, Nlink: 1, Parent: uint64(m.dir),
		AtimeNs: wall, MtimeNs: wall, CtimeNs: wall, BtimeNs: wall, Cues: dir.Cues,
	}
	if dir.Mode&mount.SetGID != 0 {
		a.Gid = dir.Gid
	}
	if !c.journalMade(f) {
		return made{}, false
	}
	if !c.alone.table.Add(f, func() bool { return c.names.Make(m.dir, m.name, a) }) {
		c.engine.Told(o, f.Journal, 0)
		return made{}, false
	}
	return made{attr: a}, true
}

// journalMade keeps a new file in the write journal, if there is one.
func (c *Client) journalMade(f *pending.File) bool {
	if !c.engine.Journals() {
		return true
	}
	encoded, err := proto.Marshal(&pb.OperateRequest{Principal: f.Principal, Operation: &pb.Operation{Op: &pb.Operation_Create{Create: f.Create}}})
	if err == nil {
		f.Journal, err = c.engine.Made(f.Object, encoded)
	}
	if err != nil {
		c.log.Warn("the write journal does not take a new file", "err", err)
	}
	return err == nil
}

// staysHere reports whether new files of a directory go to its own slice, as
// place decides, where that is known without asking.
func (c *Client) staysHere(dir *pb.Attr) bool {
	parent := geoconfig.ObjectID(dir.Object).Slice()
	row, ok := c.router.Known(parent)
	if !ok || row.Closed {
		return false
	}
	home := c.opt.Site
	if home == "" && dir.Cues.GetSite() == "" || dir.Cues.GetKeepTogether() {
		return true
	}
	want := cue.Policy(cue.Inherit(dir.Cues, nil), home)
	if samePolicy(row.Policy, want) && c.siteOf(row.Active) == want.Home {
		return true
	}
	s, ok := c.placed.get(want, c.boot())
	return ok && s == 0
}

// maker is who a file made here will belong to, as its active will say; false
// where that is not sure, or the caller may not make it.
func (c *Client) maker(dir *pb.Attr, who mount.Caller) (*pb.Principal, bool) {
	const want = mount.AccessWrite | mount.AccessExecute
	w := c.cluster.Who()
	if w == nil {
		return nil, false
	}
	if !w.Trusted {
		p := &pb.Principal{Uid: w.Uid, Groups: w.Gids}
		if len(w.Gids) > 0 {
			p.Gid = w.Gids[0]
		}
		return p, permits(dir, p, want)
	}
	p := principal(who)
	if !permits(dir, p, want) {
		p = withGroups(who)
	}
	return p, permits(dir, p, want)
}

// permits goes by the mode alone, for directories without ACLs.
func permits(a *pb.Attr, p *pb.Principal, mask uint32) bool {
	mode := a.Mode
	switch {
	case p.Uid == 0:
		return true
	case p.Uid == a.Uid:
		mode >>= 6
	case p.Gid == a.Gid || contains(p.Groups, a.Gid):
		mode >>= 3
	}
	return mode&mask == mask
}

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
	name := f.Name
	if fault.Is(err, fault.Exists) && !unknown(err) {
		name = conflictName(f)
		if resp, by, mark, err = c.tellAs(ctx, f, name, commit); err == nil {
			c.log.Warn("somebody else made a file of the same name while this client was cut off: both are kept", "name", f.Name, "copy", name)
		}
	}
	if err == nil {
		r := resp.Result
		old, _, known := c.names.Attr(f.Object)
		c.got(r)
		c.names.Learn(&mark, by, resp.Grants, func(l *names.Learner) {
			l.Attr(r.Dir, false)
			l.Attr(r.Attr, true)
		})
		if known && r.Attr != nil {
			c.nodes.advance(f.Object, old.Version, r.Attr.Version)
		}
		c.receipts.note(f.Object, resp.Receipt)
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
func (c *Client) tellAs(ctx context.Context, f *pending.File, name string, commit *content.Commit) (*pb.OperateResponse, geoconfig.NodeID, names.Mark, error) {
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
	c.log.Warn("a new file could not be told to its active", "name", f.Name, "object", f.Object.String(), "err", err)
	c.alone.sober.Store(int64(c.boot() + soberFor))
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
func (c *Client) settle(ctx context.Context, o geoconfig.ObjectID) error {
	if f := c.alone.table.Of(o); f != nil {
		return c.settleFile(ctx, f)
	}
	return nil
}

func (c *Client) settleFile(ctx context.Context, f *pending.File) error {
	if c.alone.table.Claim(f) {
		_, err := c.tell(ctx, f, nil)
		return err
	}
	return f.Wait(ctx)
}

// settleAll returns when the actives know all files that a condition holds for,
// or refused them.
func (c *Client) settleAll(ctx context.Context, which func(*pending.File) bool) {
	files := c.alone.table.Which(which)
	if len(files) == 0 {
		return
	}
	slots := make(chan struct{}, tellAtOnce)
	var group sync.WaitGroup
	for _, f := range files {
		slots <- struct{}{}
		group.Go(func() {
			_ = c.settleFile(ctx, f) // whoever closes it hears of it
			<-slots
		})
	}
	group.Wait()
}

// settleDir is settleAll for the files of a directory.
func (c *Client) settleDir(ctx context.Context, dir geoconfig.ObjectID) {
	c.settleAll(ctx, func(f *pending.File) bool { return f.Dir == dir })
}

// settleFor tells an active what an operation depends on that it does not know.
// What it refuses, the operation then does not find.
func (c *Client) settleFor(ctx context.Context, o *operation) {
	if o.first != nil || c.alone.table.Len() == 0 {
		return
	}
	object := func(id uint64) { _ = c.settle(ctx, geoconfig.ObjectID(id)) }
	name := func(dir uint64, name []byte) {
		if f := c.alone.table.At(geoconfig.ObjectID(dir), string(name)); f != nil {
			_ = c.settleFile(ctx, f)
		}
	}
	inside := func(dir uint64, name []byte) { // what is removed must be seen not to be empty
		if e, _, ok := c.names.Lookup(geoconfig.ObjectID(dir), string(name)); ok && e.Type == mount.TypeDir {
			c.settleDir(ctx, e.Object)
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
		c.settleDir(ctx, geoconfig.ObjectID(op.SetAttr.Object))
	case *pb.Operation_SetXattr:
		object(op.SetXattr.Object)
		c.settleDir(ctx, geoconfig.ObjectID(op.SetXattr.Object))
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
			before := c.boot() - tellAfter
			if old := c.alone.table.Which(func(f *pending.File) bool { return f.Since < before }); len(old) > 0 {
				c.background(func(ctx context.Context) {
					c.settleAll(ctx, func(f *pending.File) bool { return f.Since < before })
				})
			}
		}
	}
}

// tellSoon tells actives of the files that a condition holds for, in the
// background; then runs when that is done.
func (c *Client) tellSoon(which func(*pending.File) bool, then func()) {
	if len(c.alone.table.Which(which)) == 0 || !c.background(func(ctx context.Context) {
		c.settleAll(ctx, which)
		then()
	}) {
		then()
	}
}
