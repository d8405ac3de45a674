package operate

import (
	"sync/atomic"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// slice is what the loop keeps of one slice.
type slice struct {
	id      geoconfig.SliceID
	role    replica.RoleKind
	row     *geoconfig.SliceRow
	over    *overlay
	view    view
	pub     *Published
	applied geoconfig.Serial
	// proposed are the operations under way here, by serial.
	proposed map[geoconfig.Serial]*Operation
	// answers wait for everything up to a serial to be applied.
	answers []lateAnswer
	// parked operations wait for an intent, or for the time of notBefore.
	parked []*Operation
	since  uint64 // see Published
	// notBefore is until when no leased object may be changed (after a
	// hand-over whose list of leases did not arrive).
	notBefore replica.Time
}

// lateAnswer changed nothing, but was read from what is not committed yet.
type lateAnswer struct {
	after geoconfig.Serial
	op    *Operation
	a     Answer
}

// Published is what other goroutines may know of a slice at this node.
type Published struct {
	Slice geoconfig.SliceID
	Role  replica.RoleKind
	Row   *geoconfig.SliceRow // must not be changed; nil: unknown
	until atomic.Int64        // boottime
	// Since is the last serial that this node did not lead itself; valid while
	// it leads.
	Since uint64
	// Applied is the serial of the last entry in the metadata.
	Applied atomic.Uint64
}

// Serves reports whether the node may act for the slice at that time.
func (p *Published) Serves(now replica.Time) bool {
	return p != nil && p.Role == replica.RoleLeading && int64(now) < p.until.Load()
}

// Until returns until when it may.
func (p *Published) Until() replica.Time { return replica.Time(p.until.Load()) }

// Published returns what is known of a slice here, or nil.
func (l *Loop) Published(id geoconfig.SliceID) *Published {
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
func (l *Loop) slice(id geoconfig.SliceID) *slice {
	s := l.slices[id]
	if s == nil {
		over := newOverlay()
		s = &slice{id: id, over: over, view: view{over: over, base: Committed(l.o.Meta, id)},
			proposed: map[geoconfig.Serial]*Operation{}, pub: &Published{Slice: id}}
		l.slices[id] = s
		l.published.Store(id, s.pub)
	}
	return s
}

// publish replaces what others see, after the role or the row changed.
func (l *Loop) publish(s *slice) {
	p := &Published{Slice: s.id, Role: s.role, Row: s.row, Since: s.since}
	p.Applied.Store(uint64(s.applied))
	if s.role == replica.RoleLeading {
		p.until.Store(int64(l.o.Core.Until(s.id)))
	}
	old := s.pub
	s.pub = p
	l.published.Store(s.id, p)
	old.until.Store(0) // whoever still holds the old one stops acting on it
}

// committed is the state of one slice in the metadata: versioned keys in the
// versioned area, the others in the plain one.
type committed struct {
	db    *meta.DB
	slice geoconfig.SliceID
	view  meta.View
}

// Committed returns the committed state of a slice as a tree.View.
func Committed(db *meta.DB, s geoconfig.SliceID) tree.View {
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
