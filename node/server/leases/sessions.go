// Package leases gives the table of package lease its clock, its mutex and its
// connections: it keeps sessions alive, sends revocations, and tells the loop
// when all holders have answered. The table decides which client is promised
// what. A Sessions is safe for concurrent use.
package leases

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Caller reaches clients.
type Caller interface {
	Start(peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, timeout time.Duration, then func(*wire.Answer)) error
}

// Options are what a Sessions works with.
type Options struct {
	Config lease.Config
	First  uint64 // where session numbers start: random
	Clock  boottime.Func
	Caller Caller
	// Each calls f for every slice known here, until it returns false.
	Each func(f func(*operate.Published) bool)
	// Published is one slice's.
	Published func(ids.Slice) *operate.Published
	// Ended hears of clients' sessions that lapsed or were closed, or in whose
	// place the client has another one by now.
	Ended func(client, session uint64)
	// Far reports whether a peer stands at another site; for traces. It must
	// not call back.
	Far    func(peer string) bool
	Logger *slog.Logger
}

// Sessions is a node's sessions.
type Sessions struct {
	o          Options
	exceptions exceptions

	mu    sync.Mutex // guards the rest; never held while anything is called back
	table *lease.Table
	live  map[lease.ID]*living     // what the table does not keep of its sessions
	marks map[uint64]*lease.Change // the changes that have begun, by mark
	mark  uint64                   // the last one given out; 0 is none
}

// living is what the table does not keep of a session.
type living struct {
	peer string
	end  int64
}

// waiting is the Tag of a change that waits.
type waiting struct{ then func(holders []tree.Holder) }

// New returns a Sessions without sessions.
func New(o Options) *Sessions {
	return &Sessions{o: o, exceptions: exceptions{list: o.First}, table: lease.New(o.Config, o.First), live: map[lease.ID]*living{}, marks: map[uint64]*lease.Change{}}
}

func (s *Sessions) now() int64 { return int64(s.o.Clock()) }

// KeepAlive opens, prolongs or closes a peer's session, which counts for a user.
func (s *Sessions) KeepAlive(peer, user string, client uint64, req *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error) {
	if req.Close {
		s.mu.Lock()
		ready := s.table.Close(lease.ID(req.Session), client)
		delete(s.live, lease.ID(req.Session))
		s.mu.Unlock()
		s.o.Ended(client, req.Session)
		run(ready)
		return &pb.KeepAliveResponse{}, nil
	}
	out := &pb.KeepAliveResponse{}
	now := s.now()
	until, list, excepted := s.exceptions.at(now, s.o.Config.Length, s.o.Each)
	if out.List = list; list != req.List {
		out.Excepted = excepted
	}
	limit := min(s.o.Config.Length, until-now)
	s.mu.Lock()
	var id lease.ID
	var left int64
	var ready []*lease.Change
	err := s.table.Admit(lease.ID(req.Session), user)
	if err == nil {
		id, left, ready, err = s.table.KeepAlive(lease.ID(req.Session), client, limit, now)
	}
	if err == nil {
		s.table.Charge(id, user)
		l := s.live[id]
		if l == nil {
			l = &living{}
			s.live[id] = l
		}
		l.peer, l.end = peer, max(l.end, now+left)
		if req.Session != 0 && lease.ID(req.Session) != id {
			delete(s.live, lease.ID(req.Session))
		}
	}
	s.mu.Unlock()
	if err == nil && req.Session != 0 && lease.ID(req.Session) != id {
		s.o.Ended(client, req.Session)
	}
	run(ready)
	if err != nil {
		return nil, err
	}
	out.Session, out.LeftNs = uint64(id), left
	return out, nil
}

// run lets changes go on that no lease holds up any more.
func run(ready []*lease.Change) {
	for _, c := range ready {
		if w, ok := c.Tag.(*waiting); ok {
			w.then(c.Holders())
		}
	}
}

// Grant implements reading.Leases.
func (s *Sessions) Grant(id uint64, slice ids.Slice, epoch ids.Epoch, object ids.Object, what pb.Grant_What) *pb.Grant {
	p := s.o.Published(slice)
	now := s.now()
	if !p.Serves(time.Duration(now)) {
		return nil
	}
	s.mu.Lock()
	l := s.live[lease.ID(id)]
	var serial uint64
	ok := l != nil && int64(p.Until()) >= l.end // a lease never outlives the node's right to act
	if ok {
		serial, ok = s.table.Grant(lease.ID(id), object, what, now)
	}
	evicted := s.table.Evict()
	s.mu.Unlock()
	s.send(evicted)
	if !ok {
		return nil
	}
	return &pb.Grant{Object: uint64(object), What: what, Serial: serial, Session: id, Epoch: uint64(epoch)}
}

// Opened implements reading.Leases.
func (s *Sessions) Opened(id uint64, object ids.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Opened(lease.ID(id), object)
}

// Change implements operate.Leases.
func (s *Sessions) Change(_ ids.Slice, except uint64, touched []tree.Touch, then func(holders []tree.Holder)) (mark uint64, ready, far bool) {
	if plant.On(plant.SessionAsksNobody) {
		return 0, true, false
	}
	s.mu.Lock()
	c, revocations := s.table.Begin(nil, touched, lease.ID(except))
	s.mark++
	mark = s.mark
	s.marks[mark] = c
	if ready = c.Ready(); !ready {
		c.Tag = &waiting{then: then}
	}
	if s.o.Far != nil {
		for _, r := range revocations {
			l := s.live[r.Session]
			far = far || l != nil && s.o.Far(l.peer)
		}
	}
	s.mu.Unlock()
	s.send(revocations)
	return mark, ready, far
}

// Changed implements operate.Leases.
func (s *Sessions) Changed(mark uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.End(s.marks[mark])
	delete(s.marks, mark)
}

// Void implements operate.Leases.
func (s *Sessions) Void(slice ids.Slice) {
	s.mu.Lock()
	ready := s.table.Void(slice, s.now())
	s.mu.Unlock()
	run(ready)
}

// Run ends sessions whose time is over, until ctx ends.
func (s *Sessions) Run(ctx context.Context) {
	tick := time.NewTicker(time.Duration(max(s.o.Config.Length/100, int64(5*time.Millisecond))))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.expire()
		}
	}
}

// expire ends the sessions whose time is over.
func (s *Sessions) expire() {
	s.mu.Lock()
	now := s.now()
	if plant.On(plant.SessionEndsEarly) {
		now += s.o.Config.Length / 2
	}
	ended, ready := s.table.Expire(now)
	for _, e := range ended {
		delete(s.live, e.Session)
	}
	s.mu.Unlock()
	// First what the clients lose: a write that goes on now may be one's own.
	for _, e := range ended {
		s.o.Logger.Debug("a session ended", logattr.Client(e.Client))
		s.o.Ended(e.Client, uint64(e.Session))
	}
	run(ready)
}

// Live reports whether a client has a session here.
func (s *Sessions) Live(client uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Live(client, s.now())
}

// Valid answers Expired unless the session lives and is the client's.
func (s *Sessions) Valid(id, client uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.table.Valid(lease.ID(id), client, s.now()) {
		return fault.E(fault.Expired, "leases.Valid", "", "the session has ended: open another with a keep-alive")
	}
	return nil
}

// Len returns how many sessions and leases there are.
func (s *Sessions) Len() (sessions, leases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Len()
}
