// Package revocation gives up what leases covered: in the cache of names, in the
// content engine, and in the kernel. A lease ends when a node takes it back, when
// the session with a node lapses, when a slice has another active, and when it is
// not known what an operation of this client came to. The files that were made in a
// directory while it was exclusively this client's are published then. The package
// grants nothing and keeps nothing.
package revocation

import (
	"slices"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/cartwheel/deferred"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/locks"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/clients/pending"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/clients/session"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a Handler. None may be missing.
type Options struct {
	Names    *names.Cache
	Nodes    *inodes.Table
	Kernel   *inodes.Kernel
	Deferred *deferred.Publisher
	Locks    *locks.Keeper
	Sessions *session.Manager
	Router   *route.Router
	// Engine returns the content engine; nil: there are no files yet.
	Engine func() *content.Engine
	Clock  boottime.Func
	// Spawn runs a function in a goroutine that the client joins.
	Spawn func(func()) bool
	// Dropped hears that names were dropped that no other client changed.
	Dropped func()
}

// Handler gives leases up. It has no state and is safe for use by many goroutines.
type Handler struct{ opt Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{opt: o} }

// Revoke gives leases up that a node takes back: it runs on the goroutine that
// reads the connection and must not block. It answers when the kernel knows, or at
// once where an operation of this client on the directory is in flight, whose lock
// in the kernel the news would wait for.
func (h *Handler) Revoke(_ ids.Node, items []*pb.RevokeRequest_Item, done func(held []uint64)) {
	if plant.On(plant.ClientKeepsRevoked) {
		done(nil)
		return
	}
	busy := false
	var held []uint64
	var n inodes.Notice
	var shared []ids.Object // directories that are not exclusive any more
	waits := false
	for _, item := range items {
		o := ids.Object(item.Object)
		if h.opt.Names.Revoke(o, item.What) {
			busy = true
		}
		if item.What == pb.Grant_NAMES || item.What == pb.Grant_ALONE {
			waits = waits || !item.Leaving
			shared = append(shared, o)
		}
		if item.What == pb.Grant_ALONE {
			continue
		}
		held = append(held, h.opt.Nodes.Revoke(o, item, h.opt.Clock(), &n, h.isOwn)...)
		if item.What == pb.Grant_FILE || item.Unlinked {
			if engine := h.opt.Engine(); engine != nil {
				engine.Invalidate(o)
			}
		}
	}
	if engine := h.opt.Engine(); n.HasNames() && engine != nil { // open files that only the directory's lease covered
		for _, o := range h.opt.Nodes.Uncovered(&n, h.isCovered) {
			engine.Invalidate(o)
		}
	}
	h.opt.Kernel.Tell(&n, busy, h.publish(shared, waits, func() { done(held) }))
}

// publish publishes the files of directories that are shared now. It returns what
// the kernel's news calls: where the answer waits for the files too, that answers
// only once both have happened.
func (h *Handler) publish(shared []ids.Object, waits bool, answer func()) func() {
	if len(shared) == 0 {
		return answer
	}
	in := func(f *pending.File) bool { return slices.Contains(shared, f.Dir) }
	if !waits {
		h.opt.Deferred.PublishSoon(in, shared, func() {})
		return answer
	}
	var first atomic.Bool
	both := func() {
		if !first.CompareAndSwap(false, true) {
			answer()
		}
	}
	h.opt.Deferred.PublishSoon(in, shared, both)
	return both
}

// isCovered reports whether an object's attributes are covered by a lease.
func (h *Handler) isCovered(o ids.Object) bool {
	_, _, ok := h.opt.Names.Attr(o)
	return ok
}

// isOwn reports whether an object's attributes are covered by a lease on itself.
func (h *Handler) isOwn(o ids.Object) bool {
	_, ok := h.opt.Names.Own(o)
	return ok
}

// Lapsed hears that the session with a node ended: whatever it covered and is open
// is looked at anew, and the locks that went with it are lost, unless another node
// acts for their slice by now: that one had them claimed.
func (h *Handler) Lapsed(node ids.Node) {
	h.opt.Dropped()
	h.opt.Locks.Doubt(node)
	h.opt.Deferred.PublishSoon(func(f *pending.File) bool {
		row, ok := h.opt.Router.Known(f.Dir.Slice())
		return !ok || row.Active == node
	}, nil, func() {})
	h.opt.Spawn(func() {
		h.lookAnew(func(ids.Object) bool { return true })
	})
}

// NewRow hears of every newer slice row. A new active has none of the leases of
// the old one.
func (h *Handler) NewRow(old, row geoconfig.SliceRow) {
	if old.ID == 0 || old.Active == row.Active {
		return
	}
	h.opt.Sessions.Void(row.ID)
	h.opt.Sessions.Hurry(row.Active)
	h.opt.Dropped()
	h.opt.Deferred.PublishSoon(func(f *pending.File) bool { return f.Dir.Slice() == row.ID }, nil, func() {})
	h.opt.Spawn(func() {
		h.lookAnew(func(o ids.Object) bool { return o.Slice() == row.ID })
		h.opt.Locks.Claim(row, func() []uint64 { return h.openIn(row.ID) })
	})
}

// openIn lists the open objects of a slice that its active knows.
func (h *Handler) openIn(slice ids.Slice) (out []uint64) {
	for _, o := range h.opt.Nodes.Open(func(o ids.Object) bool { return o.Slice() == slice && h.opt.Deferred.Of(o) == nil }) {
		out = append(out, uint64(o))
	}
	return out
}

// lookAnew makes open files whose lease is gone ask for their version.
func (h *Handler) lookAnew(which func(ids.Object) bool) {
	if h.opt.Engine() == nil {
		return
	}
	n := h.opt.Nodes.ForgetOpen(h.opt.Clock(), func(o ids.Object) bool { return which(o) && !h.isCovered(o) })
	h.drop(&n)
}

// DropAll has the kernel forget everything, the names as far as it believed them at
// a time or later, and the engine the versions of all objects.
func (h *Handler) DropAll(since time.Duration) {
	n := h.opt.Nodes.ForgetAll(since)
	h.drop(&n)
}

// drop makes the kernel forget what a notice says, and the engine the versions of
// its objects.
func (h *Handler) drop(n *inodes.Notice) {
	for _, o := range n.Objects() {
		h.opt.Engine().Invalidate(o)
	}
	h.opt.Kernel.Tell(n, false, nil)
}

// Doubt forgets objects of which an operation's outcome is not known. Those that
// are 0 are none.
func (h *Handler) Doubt(objects ...ids.Object) {
	for _, o := range objects {
		if o == 0 {
			continue
		}
		h.opt.Names.Forget(o)
		h.opt.Engine().Invalidate(o)
		n := h.opt.Nodes.ForgetObject(o, h.opt.Clock())
		h.opt.Kernel.Tell(&n, false, nil)
	}
}
