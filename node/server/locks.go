package server

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/pb"
)

// locks guards the table of advisory locks and wakes who waits.
type locks struct {
	mu    sync.Mutex // guards table
	table *lock.Table
}

// granted is the Tag of a waiter: true is sent once it has the lock, false
// when another node acts for its slice.
type granted chan bool

func wake(woken []*lock.Waiter, ok bool) {
	for _, w := range woken {
		w.Tag.(granted) <- ok // has room for the one answer
	}
}

// lock answers a LockRequest; one that waits keeps its goroutine until it is
// granted or its caller gives up.
func (s *Server) lock(ctx context.Context, r *wire.Request) {
	w, err := s.who.Client(r.Peer)
	var req pb.LockRequest
	if err == nil {
		err = r.Decode(&req)
	}
	if err == nil && req.Client == 0 {
		req.Client = w.Client
	}
	if err == nil {
		err = s.sessions.Valid(req.Session, req.Client)
	}
	if err == nil && req.Lock == nil {
		err = fault.E(fault.Invalid, "server.Lock", "", "the request names no lock")
	}
	if err != nil {
		r.Fail(err)
		return
	}
	if refused := s.refused(geoconfig.SliceID(req.Slice)); refused != nil {
		r.Reply(&pb.LockResponse{Refusal: refused})
		return
	}
	answer, err := s.setLock(ctx, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

func (s *Server) setLock(ctx context.Context, req *pb.LockRequest) (*pb.LockResponse, error) {
	l := lockOf(req.Client, req.Lock)
	t := &s.locks
	t.mu.Lock()
	if req.Test {
		conflict, err := t.table.Test(l)
		t.mu.Unlock()
		return &pb.LockResponse{Granted: conflict == nil, Conflict: lockTo(conflict)}, err
	}
	out := t.table.Set(l, req.Wait, int64(s.clock()))
	answer := make(granted, 1)
	if out.Waiter != nil {
		out.Waiter.Tag = answer
	}
	t.mu.Unlock()
	wake(out.Woken, true)
	switch {
	case out.Err != nil:
		return nil, out.Err
	case out.Waiter == nil:
		return &pb.LockResponse{Granted: out.Granted, Conflict: lockTo(out.Conflict)}, nil
	}
	select {
	case ok := <-answer:
		if !ok {
			return &pb.LockResponse{Refusal: s.refused(geoconfig.SliceID(req.Slice))}, nil
		}
		return &pb.LockResponse{Granted: true}, nil
	case <-ctx.Done():
		t.mu.Lock()
		gaveUp := t.table.Cancel(out.Waiter)
		var woken []*lock.Waiter
		if !gaveUp { // granted just now, and nobody is there to have it
			undo := l
			undo.Type = lock.Unlock
			woken = t.table.Set(undo, false, int64(s.clock())).Woken
		}
		t.mu.Unlock()
		wake(woken, true)
		return nil, fault.Wrap(fault.Interrupted, "server.Lock", "", ctx.Err())
	}
}

func lockOf(client uint64, l *pb.Lock) lock.Lock {
	return lock.Lock{Object: geoconfig.ObjectID(l.Object), Owner: lock.Owner{Client: client, Owner: l.Owner}, Flock: l.Flock,
		Start: l.Start, End: l.End, Type: lock.Type(min(l.Type, 255)), PID: l.Pid}
}

func lockTo(l *lock.Lock) *pb.Lock {
	if l == nil {
		return nil
	}
	return &pb.Lock{Object: uint64(l.Object), Owner: l.Owner.Owner, Flock: l.Flock, Start: l.Start, End: l.End, Type: uint32(l.Type), Pid: l.PID}
}

// refused answers with the row unless this node may act for the slice now.
func (s *Server) refused(id geoconfig.SliceID) *pb.Refusal {
	p := s.loop.Published(id)
	if p.Serves(s.clock()) {
		return nil
	}
	var row *geoconfig.SliceRow
	if known, ok := s.directory.Slice(id); ok {
		row = &known
	}
	return reading.Refusal(fault.NotActive, row, "this node does not act for the slice now")
}

// claim takes in what a client had before a takeover: locks, and files that it
// has open, whose last name may be gone.
func (s *Server) claim(ctx context.Context, w *identity.Who, req *pb.ClaimRequest) (proto.Message, error) {
	if req.Client == 0 {
		req.Client = w.Client
	}
	if err := s.sessions.Valid(req.Session, req.Client); err != nil {
		return nil, err
	}
	id := geoconfig.SliceID(req.Slice)
	if refused := s.refused(id); refused != nil {
		return &pb.ClaimResponse{Refusal: refused}, nil
	}
	claimed := make([]lock.Lock, len(req.Locks))
	for i := range req.Locks {
		claimed[i] = lockOf(req.Client, req.Locks[i])
	}
	s.locks.mu.Lock()
	lost := s.locks.table.Claim(claimed)
	s.locks.mu.Unlock()
	out := &pb.ClaimResponse{}
	for i := range lost {
		out.Lost = append(out.Lost, lockTo(&lost[i]))
	}
	for _, o := range req.Open { // a lease makes the last unlink ask who has it open
		s.sessions.Grant(req.Session, id, 0, geoconfig.ObjectID(o), pb.Grant_FILE)
	}
	return out, ctx.Err()
}

// sessionEnded lets go of a client's locks and open files once its last
// session here is over.
func (s *Server) sessionEnded(client uint64) {
	if s.sessions.Live(client) {
		return
	}
	s.locks.mu.Lock()
	_, woken := s.locks.table.ReleaseClient(client)
	s.locks.mu.Unlock()
	wake(woken, true)
	s.goRun(func(ctx context.Context) { s.releaseHolds(ctx, client) })
}

// lockRole follows this node's part in a slice: a new active gives holders one
// lease to claim their locks, a former one lets all go.
func (s *Server) lockRole(r *replica.Role, led bool) {
	s.locks.mu.Lock()
	var refused []*lock.Waiter
	if r.Kind == replica.RoleLeading && !led {
		s.locks.table.AwaitClaims(r.Slice, int64(s.clock()+s.config.Session))
	} else if r.Kind != replica.RoleLeading {
		refused = s.locks.table.ReleaseSlice(r.Slice)
	}
	s.locks.mu.Unlock()
	wake(refused, false)
}

// lostLock reports whether a client's write must fail because it lost a lock.
func (s *Server) lostLock(op *operate.Operation) bool {
	commit := op.Op.GetCommit()
	if commit == nil || op.Client == 0 {
		return false
	}
	s.locks.mu.Lock()
	defer s.locks.mu.Unlock()
	return s.locks.table.Lost(op.Client, geoconfig.ObjectID(commit.Object))
}
