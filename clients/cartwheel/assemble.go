package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/commits"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/destination"
	"cartwheel.dev/clients/cartwheel/holds"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/locks"
	"cartwheel.dev/clients/cartwheel/opens"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/cartwheel/prefetch"
	"cartwheel.dev/clients/cartwheel/receipts"
	"cartwheel.dev/clients/cartwheel/remembered"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/resolve"
	"cartwheel.dev/clients/cartwheel/revocation"
	"cartwheel.dev/clients/cartwheel/space"
	"cartwheel.dev/clients/cartwheel/stream"
	"cartwheel.dev/clients/cartwheel/transfer"
	"cartwheel.dev/clients/cartwheel/xattrs"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

// assemble makes the parts that work on what the connection reaches. A part takes
// those before it. Where it needs a later one, it takes a function that looks it up:
// none is called before the client is connected.
func (c *Client) assemble() {
	var kept receipts.Table
	chooser := destination.New(destination.Options{Site: c.opt.Site, Router: c.router, Cluster: c.cluster, Clock: c.opt.Clock, Logger: c.opt.Logger})
	c.assembleCalls(&kept)
	c.assembleNames(&kept, chooser)
	c.assembleFiles()
	c.revocation = revocation.New(revocation.Options{
		Names: c.names, Nodes: c.nodes, Kernel: c.kernel, Deferred: c.deferred, Locks: c.locks, Sessions: c.sessions, Router: c.router,
		Engine: func() *content.Engine { return c.engine }, Clock: c.opt.Clock, Spawn: c.life.spawn,
		Dropped: c.resolver.Dropped,
	})
	c.space = space.New(space.Options{Nodes: c.cluster, Clock: c.opt.Clock, Remotely: c.limits.Remotely, Copies: func() int {
		row, _ := c.router.Known(ids.RootSlice)
		return max(len(row.Members), 1)
	}})
}

// assembleCalls makes what asks nodes, and the caches that learn the answers.
func (c *Client) assembleCalls(kept *receipts.Table) {
	o := &c.opt
	doubt := func(list ...ids.Object) { c.revocation.Doubt(list...) }
	c.names, c.remembered = names.New(c.sessions, o.Names), remembered.New(o.Clock)
	c.names.OnAttr = c.tickets.Learn
	send := func(ctx context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
		return c.calls.Publish(ctx, o)
	}
	ahead := stream.New(stream.Options{
		Limit: 8 * o.UntoldFiles, Context: c.life.ctx, Names: c.names, Clock: o.Clock, Logger: o.Logger, Send: send, Doubt: doubt,
		PublishFile: func(ctx context.Context, f *pending.File) error { return c.deferred.PublishFile(ctx, f) },
		Reserve:     func(s ids.Slice) uint32 { return c.deferred.Reserve(s) }, Got: func(r *pb.Result) { c.deferred.Got(r) },
		Spawn: c.life.spawn, UntilKnown: c.limits.UntilKnown,
	})
	c.deferred = deferred.New(deferred.Options{
		Limit: o.UntoldFiles, Context: c.life.ctx, Names: c.names, Stream: ahead, Receipts: kept, Logger: o.Logger, Clock: o.Clock,
		Told:         func(o ids.Object, number, version uint64) { c.engine.Told(o, number, version) },
		Send:         send,
		SendContent:  func(o ids.Object) { c.engine.Send(o) },
		FlushContent: func(ctx context.Context, o ids.Object) error { return c.engine.FlushObject(ctx, o) },
		AdvancePages: c.nodes.AdvancePages, Doubt: doubt, Spawn: c.life.spawn, Background: c.life.background, UntilKnown: c.limits.UntilKnown,
	})
	c.alone = alone.New(alone.Options{Names: c.names, Stream: ahead, Files: c.deferred.Table, Who: c.cluster.Who, Wall: o.Wall})
	c.calls = calls.New(calls.Options{
		Router: c.router, Operator: route.NewOperator(c.router, o.InFlight), Cluster: c.cluster, Sessions: c.sessions, Names: c.names,
		Tickets: c.tickets, Receipts: kept, Remembered: c.remembered, Deferred: c.deferred, HLC: c.hlc, Wall: o.Wall, Remotely: c.limits.Remotely,
		AdvancePages: c.nodes.AdvancePages, Doubt: doubt,
	})
	c.handles.owed = owed.New()
	c.handles.keeper = owed.NewKeeper(owed.Options{Table: c.handles.owed, Calls: c.calls, Names: c.names, Who: c.cluster.Who, IsWritten: c.handles.isWritten,
		Background: c.life.background, Wall: o.Wall})
}

// assembleNames makes what reads, makes and answers names and attributes.
func (c *Client) assembleNames(kept *receipts.Table, chooser *destination.Chooser) {
	o := &c.opt
	engine := func() *content.Engine { return c.engine }
	c.lists = listing.New(listing.Options{Context: c.life.ctx, Names: c.names, Tickets: c.tickets, Ask: c.calls.List, Publish: c.deferred.PublishDir,
		IsNear: c.cluster.Near, Spawn: c.life.spawn})
	c.cluster.Host().Message(method.Page, c.lists.Pushed)
	c.resolver = resolve.New(resolve.Options{
		Calls: c.calls, Names: c.names, Remembered: c.remembered, Tickets: c.tickets, Deferred: c.deferred, Clock: o.Clock, IsFar: c.far, List: c.lists.Prefetch,
		Background: c.life.background,
	})
	c.replies = replies.New(replies.Options{Names: c.names, Owed: c.handles.owed, Nodes: c.nodes, Kernel: c.kernel, Clock: o.Clock, Engine: engine})
	c.holds = holds.New(holds.Options{
		Context: c.life.ctx, OpTimeout: o.OpTimeout, Clock: o.Clock, Client: c.cluster.Client, Calls: c.calls, Names: c.names, Nodes: c.nodes,
		Engine:     func() holds.Engine { return c.engine },
		LastClosed: func(o ids.Object) { _ = c.deferred.Refusal(o) }, // no close is left to report it
		Spawn:      c.life.spawn, Background: c.life.background, Logger: o.Logger,
	})
	c.maker = creation.New(creation.Options{
		Calls: c.calls, Names: c.names, Deferred: c.deferred, Stream: c.alone.Stream, Alone: c.alone, Destination: chooser, Receipts: kept, Cluster: c.cluster,
		Engine:   engine,
		Find:     c.resolver.Find,
		Begin:    func(dir ids.Object, name string) names.Mark { return c.begin(dir, 0, 0, name) },
		Made:     func(dir ids.Object, cues cue.Set, name string) { c.kernel.TellAliases(dir, cues, name) },
		Doubt:    func(list ...ids.Object) { c.revocation.Doubt(list...) },
		Remotely: c.limits.Remotely, HoldFrom: o.HoldFrom, Clock: o.Clock, Wall: o.Wall, Logger: o.Logger,
	})
	c.xattrs = xattrs.New(xattrs.Options{
		Calls: c.calls, Names: c.names, Router: c.router, Cluster: c.cluster, Tickets: c.tickets, Receipts: kept, Deferred: c.deferred,
		Destination: chooser, Remotely: c.limits.Remotely,
	})
}

// assembleFiles makes what locks, reads ahead and carries what is in files.
func (c *Client) assembleFiles() {
	o := &c.opt
	c.locks = locks.New(locks.Options{
		Context: c.life.ctx, OpTimeout: o.OpTimeout, Router: c.router, Cluster: c.cluster, Sessions: c.sessions, Tickets: c.tickets, Logger: o.Logger,
		Files: locked{c}, Spawn: c.life.spawn, Remotely: c.limits.Remotely, NoteRange: c.nodes.NoteRangeLock, IsDirty: c.isDirty,
	})
	committer := commits.New(commits.Options{
		Calls: c.calls, Names: c.names, Deferred: c.deferred, Owed: c.handles.owed, ShowOwned: c.tickets.ShowOwned, MayCommit: c.locks.MayCommit,
		Doubt:     func(list ...ids.Object) { c.revocation.Doubt(list...) },
		DropPages: func(o ids.Object) { c.kernel.Invalidate(inodes.Plain(o), 0, 0) },
	})
	c.chunks = transfer.New(transfer.Options{Router: c.router, Cluster: c.cluster, Tickets: c.tickets, Clock: c.opt.Clock, Commit: committer.Commit, Version: c.calls.Whole})
	ahead := prefetch.New(prefetch.Options{
		Router: c.router, Cluster: c.cluster, Sessions: c.sessions, Names: c.names, Tickets: c.tickets, Recorder: c.recorder, IsFar: c.far,
		IsDeferred: func(o ids.Object) bool { return c.deferred.Of(o) != nil || c.alone.Touches(o) },
		Keep:       func(a *pb.Attr, data []byte) { c.engine.Keep(a, data) },
		Background: c.life.background,
	})
	c.opens = opens.New(opens.Options{
		Calls: c.calls, Names: c.names, Nodes: c.nodes, Kernel: c.kernel, Deferred: c.deferred, Ahead: ahead, Cluster: c.cluster, Limits: c.limits,
		Engine:        func() *content.Engine { return c.engine },
		AwaitRecovery: func(ctx context.Context, o ids.Object) error { return c.recovery.Await(ctx, o) },
		IsContentNear: c.nearContent,
	})
}
