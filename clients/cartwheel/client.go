// Package cartwheel is the client library: the whole tree as a
// mount.FileSystem, over names and attributes cached under leases (names), the
// bytes of files (content), and operations that reach the active of each slice
// exactly once (route, session). It stores nothing itself, and knows kernels
// only through package mount. A Client is safe for use by many goroutines;
// Close joins all of its own.
//
// Lock order: node table, then what was refused; files that are pending, then
// names; the caches below have locks of their own and call nobody. No lock is held across a call to a node.
package cartwheel

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Options set up a Client.
type Options struct {
	Contact contact.File
	// Site is where this machine stands; empty: unknown, then what is made goes
	// to its parent's slice.
	Site ids.Site
	// Name is shown to people: host and mount point.
	Name string
	// CacheDir is the folder of the disk cache and the write journal; empty:
	// none. One process a folder.
	CacheDir   string
	CacheBytes int64
	// OpTimeout bounds one operation with all of its retries (60 s). What was
	// written is sent for longer: until the nodes take it, unless Soft is set.
	OpTimeout time.Duration
	// Soft gives a write up that no node took within OpTimeout. A program is told.
	Soft bool
	// FlushTimeout is for how long Close goes on while nothing that is unsent gets
	// to the nodes (OpTimeout).
	FlushTimeout time.Duration
	// RetryAfter is the first pause before a write that did not get through is
	// sent again (50 ms). It doubles up to 2 s.
	RetryAfter time.Duration
	// AheadFrom is the round trip to the active of a slice from which on answers
	// bring names along that may be asked for next (DefaultAheadFrom); negative:
	// none ever do.
	AheadFrom time.Duration
	// Memory is what the process aims to stay under, in bytes (DefaultMemory): the
	// limits below and the engine's are sized by it where they are zero.
	Memory int64
	// KnownFiles is how many files and folders the kernel may know at a time;
	// beyond that it is asked to give up those that it looked up the longest time
	// ago. Negative: as many as it likes. What is in use is not bounded.
	KnownFiles int
	// DirtyBytes bounds what is written and not at the nodes: then writers wait.
	// MemoryCache bounds the content and range maps in memory. Zero: by Memory.
	DirtyBytes, MemoryCache int64
	// ReadAhead bounds what one open file is read ahead (8 MiB), FlushAfter is the
	// age at which written bytes are sent though no program asked (5 s).
	ReadAhead  int64
	FlushAfter time.Duration
	// UntoldFiles bounds the new files that their active has not heard of (1,024):
	// beyond that each is made there at once.
	UntoldFiles int
	// InFlight bounds the operations under way on one slice (route.DefaultInFlight):
	// beyond that they wait here.
	InFlight int
	// Names bound the names and attributes that are kept under leases.
	Names names.Limits
	// NoReadAhead and NoRangeMap are for measurements.
	NoReadAhead, NoRangeMap bool
	Logger                  *slog.Logger
	// Now is wall time, BootTime the clock of leases; nil: the system's.
	Now      func() time.Time
	BootTime boottime.Func
	// The rest is zero but in a simulation. Network makes the connections, Key
	// is the process's identity, and Random its chance.
	Network wire.Network
	Key     wire.Key
	Random  *rand.Rand
	// JournalFileBytes is behind how many bytes the write journal begins a new file.
	JournalFileBytes int64
}

// Client is one mount's view of the tree.
type Client struct {
	opt      Options
	log      *slog.Logger
	cluster  *contact.Cluster
	router   *route.Router
	operator *route.Operator
	sessions *session.Manager
	names    *names.Cache
	engine   *content.Engine
	hlc      *hlc.Clock
	boot     boottime.Func
	disk     *disk // nil: no cache folder
	recovery recovery

	// ctx is what calls to nodes run under; Close ends it.
	ctx  context.Context
	stop context.CancelFunc
	life sync.Mutex // guards over, so that nothing starts behind the end
	over bool
	work sync.WaitGroup

	nodes     nodes
	handles   handles
	locks     locks
	placed    placements
	alone     aloneness
	space     spaceCache
	receipts  receipts
	waits     waits
	lettingGo lettingGo
	seen      seen
	meanings  meanings
	brought   brought
	tickets   tickets
	ahead     ahead
	streams   streams
	recorder  *trace.Recorder
	notifier  atomic.Pointer[mount.Notifier]
	arrived   atomic.Uint64 // files that were made here and their actives told of
	closing   sync.Once
	closed    error
}

var _ mount.FileSystem = (*Client)(nil)

// Open connects to the cluster. It fails with a clear fault where no node
// answers, the key is unknown or the cluster is another one.
func Open(ctx context.Context, o Options) (*Client, error) {
	const op fault.Op = "cartwheel.Open"
	o = o.filled()
	c := &Client{opt: o, log: o.Logger, boot: o.BootTime, hlc: hlc.New(o.Now)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.recorder = trace.New(trace.Options{Clock: o.BootTime, Below: mount.Below})
	c.nodes.init()
	c.nodes.limit = o.KnownFiles
	c.handles.init()
	c.locks.init()
	c.alone.init(o.UntoldFiles)
	c.waits.by = map[ids.Object][]*waiting{}
	cluster, err := contact.New(contact.Options{
		File: o.Contact, Site: o.Site, Name: o.Name, Logger: o.Logger, Measure: true,
		HLC: func() uint64 { return uint64(c.hlc.Last()) }, OnHLC: c.observe, Clock: o.BootTime,
		Network: o.Network, Key: o.Key, Random: o.Random,
	})
	if err != nil {
		c.stop()
		return nil, err
	}
	c.cluster = cluster
	c.router = route.New(cluster, o.Logger, c.onRow)
	c.operator = route.NewOperator(c.router, o.InFlight)
	c.sessions = session.New(cluster, o.BootTime, session.Handlers{Lapsed: c.lapsed, Revoke: c.revoke}, o.Logger)
	cluster.Host().Inline(method.Revoke, c.sessions.Revoke)
	c.names = names.New(c.sessions, o.Names)
	c.names.OnAttr = func(a *pb.Attr) { c.tickets.learn(a, c.boot()) }
	cluster.Host().Message(method.Page, c.pushed)
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
	o := content.Options{Soft: c.opt.Soft, RetryAfter: c.opt.RetryAfter, CommitTimeout: c.opt.OpTimeout, NoRangeMap: c.opt.NoRangeMap, Now: c.opt.Now, Log: c.log, Trace: c.recorder}
	if c.opt.NoReadAhead {
		o.ReadAhead = -1
	}
	c.opt.engine(&o)
	if err := c.openDisk(&o); err != nil {
		return err
	}
	c.engine = content.New((*remote)(c), o)
	c.spawn(c.tellOld)
	c.spawn(c.watch)
	c.recover(ctx)
	return nil
}

func (o Options) filled() Options {
	if o.OpTimeout == 0 {
		o.OpTimeout = route.DefaultLimit
	}
	if o.FlushTimeout == 0 {
		o.FlushTimeout = o.OpTimeout
	}
	if o.AheadFrom == 0 {
		o.AheadFrom = DefaultAheadFrom
	}
	o = o.sized()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BootTime == nil {
		o.BootTime = boottime.Default()
	}
	return o
}

// observe follows the nodes' clocks. One that is far ahead is not followed:
// the nodes report each other.
func (c *Client) observe(_ string, t uint64) { _ = c.hlc.Observe(hlc.Time(t)) }

func (c *Client) siteKnown(site ids.Site) bool {
	for _, s := range c.cluster.Sites() {
		if s.Name == site {
			return true
		}
	}
	return false
}

func (c *Client) end() error {
	c.notifier.Store(nil)
	c.stop()
	c.life.Lock()
	c.over = true
	c.life.Unlock()
	c.work.Wait()
	c.sessions.Close()
	c.router.Close()
	return errors.Join(c.cluster.Close(), c.closeDisk())
}

// Init implements mount.FileSystem.
func (c *Client) Init(n mount.Notifier) { c.notifier.Store(&n) }

// Destroy implements mount.FileSystem; Close does the rest.
func (c *Client) Destroy() { c.notifier.Store(nil) }

// kernel runs fn on the notifier, if somebody has mounted the Client.
func (c *Client) kernel(fn func(mount.Notifier)) {
	if n := c.notifier.Load(); n != nil {
		fn(*n)
	}
}

// interruptGrace is how long a call to a node goes on after its caller was
// interrupted, half of it at least from the signal on: an operation that was
// sent should have its answer, and the caller should not wait a second.
const interruptGrace = 800 * time.Millisecond

// outlasting is a context that outlasts its request's by the grace.
type outlasting struct{ context.Context }

type outlastingKey struct{}

// Value implements context.Context.
func (o outlasting) Value(key any) any {
	if key == (outlastingKey{}) {
		return true
	}
	return o.Context.Value(key)
}

// outlast returns a context that ends with the client, not with the request.
func (c *Client) outlast(ctx context.Context) outlasting { return outlasting{trace.Carry(c.ctx, ctx)} }

// outlasts reports whether a context has the grace already.
func outlasts(ctx context.Context) bool { return ctx.Value(outlastingKey{}) != nil }

// remotely returns the context for calls to nodes on behalf of one request.
func (c *Client) remotely(ctx context.Context) (context.Context, context.CancelFunc) {
	if outlasts(ctx) {
		return context.WithTimeout(ctx, c.opt.OpTimeout)
	}
	out, cancel := context.WithTimeout(c.outlast(ctx), c.opt.OpTimeout)
	stop := endAfterGrace(ctx, out, cancel)
	return out, func() { stop(); cancel() }
}

// endAfterGrace cancels out when ctx ends, but not before the grace is over.
// Nothing watches a call that is shorter than half of it.
func endAfterGrace(ctx, out context.Context, cancel func()) (stop func() bool) {
	return time.AfterFunc(interruptGrace/2, func() {
		select {
		case <-ctx.Done():
		case <-out.Done():
			return
		}
		rest := time.NewTimer(interruptGrace / 2)
		defer rest.Stop()
		select {
		case <-rest.C:
			cancel()
		case <-out.Done():
		}
	}).Stop
}

// spawn runs fn in a goroutine that Close joins, unless that has begun: then
// it answers false.
func (c *Client) spawn(fn func()) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if !c.over {
		c.work.Go(fn)
	}
	return !c.over
}

// background runs fn like spawn, within the limit of one operation.
func (c *Client) background(fn func(context.Context)) bool {
	return c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.ctx, c.opt.OpTimeout)
		defer cancel()
		fn(ctx)
	})
}

// mayDropCaches reports whether a caller may empty the caches of the whole mount:
// root and the user whose process serves it.
func mayDropCaches(who mount.Caller) bool {
	own := os.Geteuid()
	return who.UID == 0 || own < 0 || who.UID == uint32(own) // below 0: this system has no such numbers
}

// DropCaches forgets everything that can be asked for again. What is dirty is
// committed first, as far as that goes until the caller has enough.
func (c *Client) DropCaches(caller context.Context) {
	ctx, cancel := context.WithTimeout(trace.Carry(c.ctx, caller), c.opt.OpTimeout)
	defer cancel()
	defer context.AfterFunc(caller, cancel)()
	if err := c.engine.FlushAll(ctx); err != nil {
		c.log.Warn("not everything could be committed before the caches were dropped", "err", err)
	}
	_ = c.settleAll(ctx, every) // their closes tell
	c.names.Clear()
	c.brought.clear()
	c.engine.DropCaches()
	c.dropKernel(func(*node) bool { return true })
}
