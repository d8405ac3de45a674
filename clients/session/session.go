// Package session is the client's half of sessions: one keep-alive for each node
// that it talks to, the time that is left, and what the leases that the node
// granted are still worth. It caches nothing itself; the caches keep the Stamp
// that Accept gave them and ask Valid. A Manager is safe for use by many
// goroutines; Close joins those of its own.
package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// maxRevoked bounds the objects whose last revocation a session remembers one
// by one; of those forgotten, no grant older than any of them is taken.
const maxRevoked = 4096

// Handlers are what the caches do when leases end. They are called from the
// Manager's goroutines and must not call back into it, except Void, Accept,
// Valid and Left.
type Handlers struct {
	// Lapsed: every lease of the node is void.
	Lapsed func(ids.Node)
	// Revoke gives up the items. It calls done once the kernel knows, or at
	// once where an operation in flight stands in the way, with those of the
	// unlinked objects that are open here.
	Revoke func(node ids.Node, items []*pb.RevokeRequest_Item, done func(held []uint64))
}

// Stamp is what a cached thing keeps of the lease that covers it. The zero
// Stamp is never valid.
type Stamp struct {
	node   *nodeSession
	number uint64
	void   uint64 // of the slice's voids
	slice  ids.Slice
}

// Manager keeps the sessions.
type Manager struct {
	caller   Caller
	now      boottime.Func
	handlers Handlers
	logger   *slog.Logger
	ctx      context.Context
	stop     context.CancelFunc
	loops    sync.WaitGroup

	// voided counts the voids of all slices. Void raises it before the slice's
	// own count, and Accept reads it after, so that none slips between.
	voided atomic.Uint64

	mu    sync.RWMutex // guards below
	nodes map[ids.Node]*nodeSession
	voids map[ids.Slice]*atomic.Uint64
}

// nodeSession is the session with one node.
type nodeSession struct {
	id ids.Node

	number  atomic.Uint64 // 0: none
	expires atomic.Int64  // boot time, ns
	left    atomic.Int64  // ns: what the node said last
	excepts atomic.Pointer[map[ids.Slice]bool]

	taking sync.Mutex // held while an answer is taken in; guards taken and list, comes before mu
	taken  uint64     // the newest keep-alive whose answer was
	list   uint64     // version of excepts at the node; 0: none

	mu      sync.Mutex             // guards below
	seen    uint64                 // highest serial of a revocation
	granted map[ids.Slice]struct{} // slices of which leases were accepted
	revoked map[uint64]uint64
	floor   uint64 // grants at or below it are not taken
	opened  chan struct{}
	isOpen  bool

	hurry chan struct{} // has room for one
}

// Caller reaches nodes; a *contact.Cluster is one. Call is as there, and Client
// the number of this process.
type Caller interface {
	Call(ctx context.Context, to ids.Node, class wire.Class, m wire.Method, req proto.Message, body [][]byte, resp proto.Message) (*wire.Buffer, error)
	Client() uint64
}

var _ Caller = (*contact.Cluster)(nil)

// New makes a Manager. Whoever has it registers Revoke as the handler of the
// nodes' revocations before the first session.
func New(caller Caller, now boottime.Func, handlers Handlers, logger *slog.Logger) *Manager {
	ctx, stop := context.WithCancel(context.Background())
	m := &Manager{
		caller: caller, now: now, handlers: handlers, logger: logger, ctx: ctx, stop: stop,
		nodes: map[ids.Node]*nodeSession{}, voids: map[ids.Slice]*atomic.Uint64{},
	}
	return m
}

// With returns the number of the session with a node, 0 where none is open
// yet; the first call opens it and waits for that, within ctx.
func (m *Manager) With(ctx context.Context, id ids.Node) uint64 {
	s := m.session(id)
	if n := s.number.Load(); n != 0 {
		return n
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
	case <-time.After(callLimit): // the request does without leases
	}
	return s.number.Load()
}

// Current returns the number of the session with a node, 0 for none.
func (m *Manager) Current(id ids.Node) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s := m.nodes[id]; s != nil {
		return s.number.Load()
	}
	return 0
}

// Hurry has the next keep-alive to a node be sent now, where there is a session with it.
// It is for a node that has begun to act for a slice: the leases that it grants there count
// only once a keep-alive's answer no longer excepts the slice.
func (m *Manager) Hurry(id ids.Node) {
	m.mu.RLock()
	s := m.nodes[id]
	m.mu.RUnlock()
	if s == nil {
		return
	}
	select {
	case s.hurry <- struct{}{}:
	default: // one is due already
	}
}

func (m *Manager) session(id ids.Node) *nodeSession {
	m.mu.RLock()
	s, ok := m.nodes[id]
	m.mu.RUnlock()
	if ok {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok = m.nodes[id]; ok {
		return s
	}
	s = &nodeSession{id: id, revoked: map[uint64]uint64{}, granted: map[ids.Slice]struct{}{}, opened: make(chan struct{}), hurry: make(chan struct{}, 1)}
	m.nodes[id] = s
	if m.ctx.Err() == nil {
		m.loops.Add(1)
		go func() { defer m.loops.Done(); m.keep(s) }()
	}
	return s
}

// except voids what the node granted on a slice for which it does not act, or
// not now. Where it granted nothing, as a standby never does, the leases of the
// slice are another node's and stand; only what is on its way is not taken.
func (m *Manager) except(s *nodeSession, id ids.Slice) {
	s.mu.Lock()
	_, granted := s.granted[id]
	delete(s.granted, id)
	s.mu.Unlock()
	if granted {
		m.Void(id)
	} else {
		m.voided.Add(1)
	}
}

// lapse voids every lease of the session and goes on with a new number.
func (m *Manager) lapse(s *nodeSession, number uint64) {
	s.mu.Lock()
	old := s.number.Swap(number)
	s.seen, s.floor = 0, 0
	clear(s.revoked)
	s.mu.Unlock()
	if old != 0 {
		m.logger.Info("a session lapsed: what it covered is looked at anew", logattr.Node(s.id))
		m.handlers.Lapsed(s.id)
	}
}

// Close ends every session and joins the goroutines.
func (m *Manager) Close() {
	m.mu.Lock()
	m.stop()
	m.mu.Unlock()
	m.loops.Wait()
}

func (m *Manager) voidsOf(id ids.Slice) *atomic.Uint64 {
	m.mu.RLock()
	v, ok := m.voids[id]
	m.mu.RUnlock()
	if ok {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok = m.voids[id]; !ok {
		v = &atomic.Uint64{}
		m.voids[id] = v
	}
	return v
}

// Void voids every lease on a slice: it has another active.
func (m *Manager) Void(id ids.Slice) {
	m.voided.Add(1)
	m.voidsOf(id).Add(1)
}

// Before returns a mark to be taken before a request is sent; Accept refuses
// the grants of an answer across which any slice's leases were voided.
func (m *Manager) Before() uint64 { return m.voided.Load() }

// Accept takes a grant that came from node, and returns the stamp for what it
// covers; false where the grant is older than a revocation already seen, or of
// another session.
func (m *Manager) Accept(node ids.Node, before uint64, g *pb.Grant) (Stamp, bool) {
	s := m.session(node)
	slice := ids.Object(g.Object).Slice()
	s.mu.Lock()
	number := s.number.Load()
	old := g.Serial <= s.floor || g.Serial <= s.revoked[g.Object]
	s.granted[slice] = struct{}{}
	s.mu.Unlock()
	void := m.voidsOf(slice).Load()
	if old || number == 0 || g.Session != number || m.voided.Load() != before {
		return Stamp{}, false
	}
	stamp := Stamp{node: s, number: number, void: void, slice: slice}
	return stamp, m.Valid(stamp)
}

// Valid reports whether what the stamp covers may be served now.
func (m *Manager) Valid(st Stamp) bool { return m.Left(st) > 0 }

// Left is how long the stamp is good for if nothing more is heard, 0 if it is
// void.
func (m *Manager) Left(st Stamp) time.Duration {
	if st.node == nil || st.node.number.Load() != st.number || m.voidsOf(st.slice).Load() != st.void {
		return 0
	}
	if e := st.node.excepts.Load(); e != nil && (*e)[st.slice] {
		return 0
	}
	return max(0, time.Duration(st.node.expires.Load())-m.now())
}

// Revoke answers a node's request to give leases up. It does not block.
func (m *Manager) Revoke(r *wire.Request) {
	var req pb.RevokeRequest
	if err := r.Decode(&req); err != nil {
		r.Fail(err)
		return
	}
	id := ids.Node(r.Peer)
	s := m.session(id)
	s.mu.Lock()
	if s.number.Load() == req.Session {
		s.seen = max(s.seen, req.Serial)
		for _, item := range req.Items {
			s.noteLocked(item.Object, req.Serial)
		}
	}
	s.mu.Unlock()
	// A request of an older session finds nothing cached under it; giving up
	// what the new one covers does no harm.
	m.handlers.Revoke(id, req.Items, func(held []uint64) { r.Reply(&pb.RevokeResponse{Held: held}) })
}

// noteLocked notes up to which serial an object's lease was revoked. s.mu is
// held.
func (s *nodeSession) noteLocked(object, serial uint64) {
	if _, ok := s.revoked[object]; !ok && len(s.revoked) >= maxRevoked {
		for o, old := range s.revoked {
			s.floor = max(s.floor, old)
			delete(s.revoked, o)
		}
	}
	s.revoked[object] = max(s.revoked[object], serial)
}
