package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/commits"
	"cartwheel.dev/clients/cartwheel/creation"
	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/destination"
	"cartwheel.dev/clients/cartwheel/holds"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/listing"
	"cartwheel.dev/clients/cartwheel/locks"
	"cartwheel.dev/clients/cartwheel/prefetch"
	"cartwheel.dev/clients/cartwheel/recovery"
	"cartwheel.dev/clients/cartwheel/replies"
	"cartwheel.dev/clients/cartwheel/resolve"
	"cartwheel.dev/clients/cartwheel/revocation"
	"cartwheel.dev/clients/cartwheel/space"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/cartwheel/transfer"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/clients/trace"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

var _ mount.FileSystem = (*Client)(nil)

// Open connects to the cluster. It fails with a clear fault where no node
// answers, the key is unknown or the cluster is another one.
func Open(ctx context.Context, o Options) (*Client, error) {
	const op fault.Op = "cartwheel.Open"
	o = o.filled()
	c := &Client{opt: o, connection: connection{hlc: hlc.New(o.Now), aheadFrom: o.AheadFrom}, life: newLifetime(o.OpTimeout)}
	c.limits = timeouts.New(timeouts.Options{Context: c.life.ctx, OpTimeout: o.OpTimeout, Soft: o.Soft, Progress: c.Progress})
	c.recorder = trace.New(trace.Options{Clock: o.BootTime, Below: mount.Below})
	c.nodes = inodes.New(o.KnownFiles)
	c.kernel = inodes.NewKernel(c.nodes)
	c.handles.init()
	cluster, err := contact.New(contact.Options{
		File: o.Contact, Site: o.Site, Name: o.Name, Logger: o.Logger, Measure: true,
		HLC: func() uint64 { return uint64(c.hlc.Last()) }, OnHLC: c.observe, Clock: o.BootTime,
		Network: o.Network, Key: o.Key, Random: o.Random,
	})
	if err != nil {
		c.life.stop()
		return nil, err
	}
	c.cluster = cluster
	c.tickets = tickets.New(tickets.Options{Who: cluster.Who, BootTime: o.BootTime, Renew: func(ctx context.Context, o ids.Object) {
		_, _ = c.calls.Fetch(ctx, o, calls.Wanted{Content: true}) // without a newer one the node says why it refuses
	}})
	doubt := func(list ...ids.Object) { c.revocation.Doubt(list...) }
	c.router = route.New(cluster, o.Logger, func(old, row geoconfig.SliceRow) { c.revocation.NewRow(old, row) })
	c.sessions = session.New(cluster, o.BootTime, session.Handlers{
		Lapsed: func(node ids.Node) { c.revocation.Lapsed(node) },
		Revoke: func(node ids.Node, items []*pb.RevokeRequest_Item, done func([]uint64)) {
			c.revocation.Revoke(node, items, done)
		},
	}, o.Logger)
	c.names = names.New(c.sessions, o.Names)
	c.names.OnAttr = c.tickets.Learn
	c.deferred = deferred.New(deferred.Options{
		Limit: o.UntoldFiles, Context: c.life.ctx, Names: c.names, Receipts: &c.receipts, Log: o.Logger, BootTime: o.BootTime,
		Engine: func() *content.Engine { return c.engine },
		Send: func(ctx context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error) {
			return c.calls.Publish(ctx, o)
		},
		AdvancePages: c.nodes.AdvancePages, Doubt: doubt, Spawn: c.life.spawn, Background: c.life.background, UntilKnown: c.limits.UntilKnown,
	})
	c.calls = calls.New(calls.Options{
		Router: c.router, Operator: route.NewOperator(c.router, o.InFlight), Cluster: cluster, Sessions: c.sessions, Names: c.names, Tickets: c.tickets, Receipts: &c.receipts,
		Deferred: c.deferred, HLC: c.hlc, Now: o.Now, Remotely: c.limits.Remotely, AdvancePages: c.nodes.AdvancePages, Doubt: doubt,
	})
	c.space = space.New(space.Options{Nodes: cluster, BootTime: o.BootTime, Remotely: c.limits.Remotely, Copies: func() int {
		row, _ := c.router.Known(ids.RootSlice)
		return max(len(row.Members), 1)
	}})
	c.destination = destination.New(destination.Options{Site: o.Site, Router: c.router, Cluster: cluster, BootTime: o.BootTime, Log: o.Logger})
	c.locks = locks.New(locks.Options{
		Context: c.life.ctx, OpTimeout: o.OpTimeout, Router: c.router, Cluster: cluster, Sessions: c.sessions, Tickets: c.tickets, Log: o.Logger,
		Files: locked{c}, Spawn: c.life.spawn, Remotely: c.limits.Remotely, NoteRange: c.nodes.NoteRangeLock, IsDirty: c.isDirty,
	})
	committer := commits.New(commits.Options{
		Calls: c.calls, Names: c.names, Tickets: c.tickets, Deferred: c.deferred, MayCommit: c.locks.MayCommit, Doubt: doubt,
		DropPages: func(o ids.Object) { c.kernel.Invalidate(inodes.Plain(o), 0, 0) },
	})
	c.chunks = transfer.New(transfer.Options{Router: c.router, Cluster: cluster, Tickets: c.tickets, Commit: committer.Commit, Version: c.calls.Whole})
	cluster.Host().Inline(method.Revoke, c.sessions.Revoke)
	c.below = prefetch.NewBelow(o.BootTime)
	c.ahead = prefetch.New(prefetch.Options{
		Router: c.router, Cluster: cluster, Sessions: c.sessions, Names: c.names, Tickets: c.tickets, Recorder: c.recorder, IsFar: c.far,
		IsDeferred: func(o ids.Object) bool { return c.deferred.Of(o) != nil },
		Keep:       func(a *pb.Attr, data []byte) { c.engine.Keep(a, data) },
		Background: c.life.background,
	})
	c.lists = listing.New(listing.Options{Context: c.life.ctx, Names: c.names, Tickets: c.tickets, Ask: c.calls.List, Publish: c.deferred.PublishDir,
		IsNear: cluster.Near, Spawn: c.life.spawn})
	cluster.Host().Message(method.Page, c.lists.Pushed)
	c.resolver = resolve.New(resolve.Options{
		Calls: c.calls, Names: c.names, Tickets: c.tickets, Deferred: c.deferred, Below: c.below, IsFar: c.far, List: c.lists.Prefetch,
	})
	c.holds = holds.New(holds.Options{
		Context: c.life.ctx, OpTimeout: o.OpTimeout, BootTime: o.BootTime, Cluster: cluster, Calls: c.calls, Names: c.names, Nodes: c.nodes,
		Engine:     func() *content.Engine { return c.engine },
		LastClosed: func(o ids.Object) { _ = c.deferred.Refusal(o) }, // no close is left to report it
		Spawn:      c.life.spawn, Background: c.life.background, Log: o.Logger,
	})
	c.replies = replies.New(replies.Options{Names: c.names, Nodes: c.nodes, Kernel: c.kernel, BootTime: o.BootTime,
		Engine: func() *content.Engine { return c.engine }})
	c.revocation = revocation.New(revocation.Options{
		Names: c.names, Nodes: c.nodes, Kernel: c.kernel, Deferred: c.deferred, Locks: c.locks, Sessions: c.sessions, Router: c.router,
		Engine: func() *content.Engine { return c.engine }, BootTime: o.BootTime, Spawn: c.life.spawn,
	})
	c.maker = creation.New(creation.Options{
		Calls: c.calls, Names: c.names, Deferred: c.deferred, Destination: c.destination, Receipts: &c.receipts, Cluster: cluster,
		Engine: func() *content.Engine { return c.engine }, Find: c.resolver.Find,
		Begin: func(dir ids.Object, name string) names.Mark { return c.begin(dir, 0, 0, name) },
		Made:  func(dir ids.Object, cues cue.Set, name string) { c.kernel.TellAliases(dir, cues, name) },
		Doubt: doubt, Remotely: c.limits.Remotely, BootTime: o.BootTime, Now: o.Now, Log: o.Logger,
	})
	c.recovery = recovery.New(recovery.Options{
		Context: c.life.ctx, OpTimeout: o.OpTimeout, Calls: c.calls, Engine: func() *content.Engine { return c.engine }, MakeApart: c.maker.MakeApart,
		Spawn: c.life.spawn, Remotely: c.limits.Remotely, Log: o.Logger,
	})
	if err := c.start(ctx); err != nil {
		c.abandon()
		return nil, fault.Wrap(fault.Unreachable, op, "", err)
	}
	return c, nil
}

// start does the part of Open that talks.
func (c *Client) start(ctx context.Context) error {
	const op fault.Op = "cartwheel.Open"
	if err := c.cluster.Connect(ctx); err != nil {
		return err
	}
	if c.opt.Site != "" && !c.siteKnown(c.opt.Site) {
		return fault.E(fault.Invalid, op, string(c.opt.Site), "there is no such site; `cartwheel status` lists them")
	}
	o := content.Options{Soft: c.opt.Soft, RetryAfter: c.opt.RetryAfter, CommitTimeout: c.opt.OpTimeout, NoRangeMap: c.opt.NoRangeMap, Now: c.opt.Now, Log: c.opt.Logger, Trace: c.recorder}
	if c.opt.NoReadAhead {
		o.ReadAhead = -1
	}
	c.opt.engine(&o)
	if c.opt.CacheDir != "" {
		folder, err := recovery.OpenFolder(recovery.FolderOptions{
			Dir: c.opt.CacheDir, CacheBytes: c.opt.CacheBytes, JournalFileBytes: c.opt.JournalFileBytes, Log: c.opt.Logger,
		})
		if err != nil {
			return err
		}
		c.folder = folder
		folder.Use(&o)
	}
	c.engine = content.New(c.chunks, o)
	c.life.spawn(c.deferred.PublishOld)
	c.life.spawn(c.watch)
	if c.folder != nil {
		c.recovery.Recover(ctx, c.folder)
	}
	return nil
}
