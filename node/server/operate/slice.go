package operate

import (
	"context"
	"slices"
	"sync/atomic"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// slice is what the loop keeps of one slice.
type slice struct {
	id      ids.Slice
	role    replica.RoleKind
	row     *geoconfig.SliceRow
	over    *overlay
	view    view
	pub     *Published
	applied ids.Serial
	taken   ids.Serial // applied, or in the batch that is being made
	// proposed are the operations under way here, by serial.
	proposed map[ids.Serial]*Operation
	// unheld are the applied entries whose chunks are not all here; there is a
	// note of each in the metadata.
	unheld map[replica.EntryID]struct{}
	// incoming is the state on its way in from another member; nil: none is.
	incoming *incoming
	// answers wait for everything up to a serial to be applied.
	answers []lateAnswer
	// parked operations wait for an intent, or for the time of notBefore.
	parked []*Operation
	since  uint64 // see Published
	ready  bool   // see prepared
	ahead  bool   // its times were found to be ahead of this node's clock
	// notBefore is until when no leased object may be changed (after a
	// hand-over whose list of leases did not arrive).
	notBefore replica.Time
}

// lateAnswer changed nothing, but was read from what is not committed yet.
type lateAnswer struct {
	after ids.Serial
	op    *Operation
	a     Answer
}

// Published is what other goroutines may know of a slice at this node.
type Published struct {
	Slice ids.Slice
	Role  replica.RoleKind
	Row   *geoconfig.SliceRow // must not be changed; nil: unknown
	until atomic.Int64        // boottime; 0: it must not act, or has nothing yet
	// Since is the last serial that this node did not lead itself; valid while
	// it leads.
	Since uint64
	// Applied is the serial of the last entry in the metadata.
	Applied atomic.Uint64
}

// NewPublished makes what others see of a slice in which the node has a role, and
// for which it may act until a time where it leads.
func NewPublished(id ids.Slice, role replica.RoleKind, row *geoconfig.SliceRow, until replica.Time) *Published {
	p := &Published{Slice: id, Role: role, Row: row}
	p.until.Store(int64(until))
	return p
}

// Serves reports whether the node may act for the slice at that time.
func (p *Published) Serves(now replica.Time) bool {
	if plant.On(plant.LoopServesLate) {
		return p != nil && p.Role == replica.RoleLeading
	}
	return p != nil && p.Role == replica.RoleLeading && int64(now) < p.until.Load()
}

// Until returns until when it may.
func (p *Published) Until() replica.Time { return replica.Time(p.until.Load()) }

// Published returns what is known of a slice here, or nil.
func (l *Loop) Published(id ids.Slice) *Published {
	if p, ok := l.published.Load(id); ok {
		return p.(*Published)
	}
	return nil
}

// EachPublished calls f for every slice until it returns false.
func (l *Loop) EachPublished(f func(*Published) bool) {
	l.published.Range(func(_, p any) bool { return f(p.(*Published)) })
}

// slice returns the loop's part of a slice, made on first use.
func (l *Loop) slice(id ids.Slice) *slice {
	s := l.slices[id]
	if s == nil {
		over := newOverlay()
		s = &slice{id: id, over: over, view: view{over: over, base: Committed(l.o.Meta, id)},
			proposed: map[ids.Serial]*Operation{}, unheld: map[replica.EntryID]struct{}{}, pub: &Published{Slice: id}}
		l.slices[id] = s
		l.published.Store(id, s.pub)
	}
	return s
}

// Uncommitted reports whether an operation that the metadata does not show yet
// changes one of the keys.
func (l *Loop) Uncommitted(ctx context.Context, id ids.Slice, keys ...[]byte) (found bool, err error) {
	err = l.Ask(ctx, func(*replica.Node, replica.Time) {
		s := l.slice(id)
		found = slices.ContainsFunc(keys, func(key []byte) bool { _, ok := s.over.get(key); return ok })
	})
	return found, err
}

// prepared reports whether the metadata has the entry that formats the slice.
// Until then nobody is answered: what would be found missing is about to be made.
func (l *Loop) prepared(s *slice) bool {
	if !s.ready {
		state, err := tree.ReadState(Committed(l.o.Meta, s.id))
		s.ready = err == nil && state.Next != 0
	}
	return s.ready
}

// publish replaces what others see, after the role or the row changed.
func (l *Loop) publish(s *slice) {
	var until replica.Time
	if s.role == replica.RoleLeading && l.prepared(s) {
		until = l.o.Core.Until(s.id)
	}
	p := NewPublished(s.id, s.role, s.row, until)
	p.Since = s.since
	p.Applied.Store(uint64(s.applied))
	old := s.pub
	s.pub = p
	l.published.Store(s.id, p)
	old.until.Store(0) // whoever still holds the old one stops acting on it
}

// committed is the state of one slice in the metadata: versioned keys in the
// versioned area, the others in the plain one.
type committed struct {
	db    *meta.DB
	slice ids.Slice
	view  meta.View
}

// Committed returns the committed state of a slice as a tree.View.
func Committed(db *meta.DB, s ids.Slice) tree.View {
	return committed{db: db, slice: s, view: db.Slice(s)}
}

func (c committed) Get(key []byte) ([]byte, bool, error) {
	if tree.Versioned(key) {
		return c.view.Get(key)
	}
	return c.db.Plain(c.slice, key)
}

// Scan needs from and to within one kind of key, as package tree asks.
func (c committed) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	if tree.Versioned(from) {
		return c.view.Scan(from, to, fn)
	}
	return c.db.ScanPlain(c.slice, from, to, fn)
}
