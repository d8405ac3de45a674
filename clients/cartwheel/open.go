package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/recovery"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/clients/trace"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

var _ mount.FileSystem = (*Client)(nil)

// Open connects to the cluster. It fails with a clear fault where no node
// answers, the key is unknown or the cluster is another one.
func Open(ctx context.Context, o Options) (*Client, error) {
	const op fault.Op = "cartwheel.Open"
	o = o.withDefaults()
	c := &Client{opt: o, life: newLifetime(o.OpTimeout)}
	c.limits = timeouts.New(timeouts.Options{Context: c.life.ctx, OpTimeout: o.OpTimeout, Soft: o.Soft, Progress: c.Progress})
	traces := trace.Options{Clock: o.Clock, Below: mount.Below}
	if o.Telemetry != nil {
		traces.Tracer = o.Telemetry.Tracer()
	}
	c.recorder = trace.New(traces)
	c.nodes = inodes.New(o.KnownFiles)
	c.kernel = inodes.NewKernel(c.nodes)
	c.handles.init()
	if err := c.reach(); err != nil {
		c.life.stop()
		return nil, err
	}
	c.assemble()
	if err := c.start(ctx); err != nil {
		c.abandon()
		return nil, fault.Wrap(fault.Unreachable, op, "", err)
	}
	return c, nil
}

// reach makes what reaches the nodes, and connects to none.
func (c *Client) reach() error {
	o := &c.opt
	c.hlc, c.aheadFrom = hlc.New(o.Wall), o.AheadFrom
	var tracer wire.Tracer // nil, and not a nil Telemetry
	if o.Telemetry != nil {
		tracer = o.Telemetry
	}
	cluster, err := contact.New(contact.Options{
		File: o.Contact, Site: o.Site, Name: o.Name, Logger: o.Logger, Measure: true,
		HLC: func() uint64 { return uint64(c.hlc.Last()) }, OnHLC: c.observe, Clock: o.Clock, Tracer: tracer,
		Network: o.Network, Key: o.Key, Random: o.Random,
	})
	if err != nil {
		return err
	}
	c.cluster = cluster
	c.tickets = tickets.New(tickets.Options{Who: cluster.Who, Clock: o.Clock, Renew: func(ctx context.Context, o ids.Object) {
		_, _ = c.calls.Fetch(ctx, o, calls.Wanted{Content: true}) // without a newer one the node says why it refuses
	}})
	c.router = route.New(cluster, o.Logger, func(old, row geoconfig.SliceRow) { c.revocation.NewRow(old, row) })
	c.sessions = session.New(cluster, o.Clock, session.Handlers{
		Lapsed: func(node ids.Node) { c.revocation.Lapsed(node) },
		Revoke: func(node ids.Node, items []*pb.RevokeRequest_Item, done func([]uint64)) {
			c.revocation.Revoke(node, items, done)
		},
	}, o.Logger)
	cluster.Host().Inline(method.Revoke, c.sessions.Revoke)
	return nil
}

// start does the part of Open that talks.
func (c *Client) start(ctx context.Context) error {
	const op fault.Op = "cartwheel.start"
	if err := c.cluster.Connect(ctx); err != nil {
		return err
	}
	if c.opt.Site != "" && !c.siteKnown(c.opt.Site) {
		return fault.E(fault.Invalid, op, string(c.opt.Site), "there is no such site; `cartwheel status` lists them")
	}
	o := content.Options{Soft: c.opt.Soft, RetryAfter: c.opt.RetryAfter, CommitTimeout: c.opt.OpTimeout, NoRangeMap: c.opt.NoRangeMap, Wall: c.opt.Wall, Logger: c.opt.Logger, Trace: c.recorder,
		Order: c.cluster.Client()}
	if c.opt.NoReadAhead {
		o.ReadAhead = -1
	}
	c.opt.engine(&o)
	if err := c.openFolder(&o); err != nil {
		return err
	}
	c.engine = content.New(c.chunks, o)
	c.life.spawn(c.deferred.PublishOld)
	asleep := newSuspension(c.opt.Clock(), c.opt.Wall())
	c.life.spawn(func() { c.watch(asleep) })
	c.recovery.Recover(ctx)
	return nil
}

// openFolder takes the cache folder, if there is one, and has an engine use it.
func (c *Client) openFolder(engine *content.Options) error {
	o := recovery.Options{
		Context: c.life.ctx, OpTimeout: c.opt.OpTimeout, Calls: c.calls, Engine: func() *content.Engine { return c.engine },
		MakeApart: c.maker.MakeApart, Spawn: c.life.spawn, Remotely: c.limits.Remotely, Logger: c.opt.Logger,
	}
	if c.opt.CacheDir != "" {
		folder, err := recovery.OpenFolder(recovery.FolderOptions{
			Dir: c.opt.CacheDir, CacheBytes: c.opt.CacheBytes, JournalFileBytes: c.opt.JournalFileBytes, Logger: c.opt.Logger,
		})
		if err != nil {
			return err
		}
		folder.Use(engine)
		o.Folder = folder
	}
	c.recovery = recovery.New(o)
	return nil
}
