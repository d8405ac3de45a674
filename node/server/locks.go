package server

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/wire"
)

// locks guards the table of advisory locks.
type locks struct {
	mu    sync.Mutex // guards table; held while the mutex of the sessions is taken
	table *lock.Table
}

// awaiting is the Tag of a request that waits in the table: no goroutine waits
// with it.
type awaiting struct {
	s     *Server
	r     *wire.Request
	lock  lock.Lock
	slice ids.Slice
	// stop ends the watch over the caller. False: it has given up, and giveUp
	// runs.
	stop func() bool
}

// setLock is inline: it answers a LockRequest at once, or leaves it in the
// table, which answers it later.
func (s *Server) setLock(r *wire.Request) {
	var req pb.LockRequest
	w, err := s.lockRequest(r, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	id := ids.Slice(req.Slice)
	if refused := s.refused(id); refused != nil {
		r.Reply(&pb.LockResponse{Refusal: refused})
		return
	}
	who, o := s.asker(w, nil), ids.Object(req.Lock.Object)
	if s.reading.HasReached(&who, o, req.Ticket) {
		s.putLock(r, &req)
		return
	}
	s.goRun(func(context.Context) {
		if err := s.reading.Reached(r.Context(), &who, o, nil); err != nil {
			r.Fail(err)
			return
		}
		s.putLock(r, &req)
	})
}

// putLock brings a request that is allowed to the table.
func (s *Server) putLock(r *wire.Request, req *pb.LockRequest) {
	id, l := ids.Slice(req.Slice), lockOf(req.Client, req.Lock)
	t := &s.locks
	t.mu.Lock()
	ended, err := s.beginLocks(req.Client, req.Session)
	var out lock.Outcome
	switch {
	case err != nil:
		out.Err = err
	case req.Test:
		out.Conflict, out.Err = t.table.Test(l)
		out.Granted = out.Conflict == nil
	default:
		out = t.table.Set(l, req.Wait, int64(s.clock()))
	}
	if out.Waiter != nil {
		r.Park()
		w := &awaiting{s: s, r: r, lock: l, slice: id}
		out.Waiter.Tag = w
		w.stop = context.AfterFunc(r.Context(), func() { w.giveUp(out.Waiter) })
	}
	t.mu.Unlock()
	s.lockEnded(ended)
	grant(out.Woken)
	switch {
	case out.Err != nil:
		r.Fail(out.Err)
	case out.Waiter == nil:
		s.answerLock(r, id, &pb.LockResponse{Granted: out.Granted, Conflict: lockTo(out.Conflict)})
	}
}

// lockRequest decodes a request and checks who sends it.
func (s *Server) lockRequest(r *wire.Request, req *pb.LockRequest) (*identity.Who, error) {
	w, err := s.who.Client(r.Peer)
	if err != nil {
		return nil, err
	}
	if err := r.Decode(req); err != nil {
		return nil, err
	}
	if err := w.Is(req.Client); err != nil {
		return nil, err
	}
	req.Client = w.Client
	if req.Lock == nil {
		return nil, fault.E(fault.Invalid, "server.Lock", "", "the request names no lock")
	}
	return w, nil
}

// beginLocks notes under which session a client asks for locks; the mutex of
// the locks is held. A session that lives now has its end still to come, and
// that comes to the table after this.
func (s *Server) beginLocks(client, session uint64) (lock.Ended, error) {
	if err := s.sessions.Valid(session, client); err != nil {
		return lock.Ended{}, err
	}
	return s.locks.table.Begin(client, session)
}

// answerLock answers what the table says, if the table still counts: where the
// lease has lapsed meanwhile, another node may give the lock to another client.
// The lock stays in this table, so that the same request finds it if this node
// goes on, and goes with the session or with the slice.
func (s *Server) answerLock(r *wire.Request, id ids.Slice, answer *pb.LockResponse) {
	if refused := s.refused(id); refused != nil {
		answer = &pb.LockResponse{Refusal: refused}
	}
	r.Reply(answer)
}

// grant answers requests that have their locks now.
func grant(woken []*lock.Waiter) {
	for _, w := range woken {
		if a := w.Tag.(*awaiting); a.stop() {
			a.s.answerLock(a.r, a.slice, &pb.LockResponse{Granted: true})
		}
	}
}

// lockEnded answers whom the end of a session concerns.
func (s *Server) lockEnded(e lock.Ended) {
	grant(e.Woken)
	for _, w := range e.Expired {
		if a := w.Tag.(*awaiting); a.stop() {
			a.r.Fail(fault.E(fault.Expired, "server.Lock", a.lock.Object.String(), "the session has ended: open another and ask again"))
		}
	}
}

// giveUp takes a request out of the table whose caller does not wait any more,
// and undoes a grant that came at the same moment.
func (a *awaiting) giveUp(w *lock.Waiter) {
	t := &a.s.locks
	t.mu.Lock()
	var woken []*lock.Waiter
	if !t.table.Cancel(w) {
		undo := a.lock
		undo.Type = lock.Unlock
		woken = t.table.Set(undo, false, int64(a.s.clock())).Woken
	}
	t.mu.Unlock()
	grant(woken)
	a.r.Fail(fault.E(fault.Interrupted, "server.Lock", a.lock.Object.String(), "the caller gave up"))
}

func lockOf(client uint64, l *pb.Lock) lock.Lock {
	return lock.Lock{Object: ids.Object(l.Object), Owner: lock.Owner{Client: client, Owner: l.Owner}, Flock: l.Flock,
		Start: l.Start, End: l.End, Type: lock.Type(min(l.Type, 255)), PID: l.Pid}
}

func lockTo(l *lock.Lock) *pb.Lock {
	if l == nil {
		return nil
	}
	return &pb.Lock{Object: uint64(l.Object), Owner: l.Owner.Owner, Flock: l.Flock, Start: l.Start, End: l.End, Type: uint32(l.Type), Pid: l.PID}
}

// refused answers with the row unless this node may act for the slice now.
func (s *Server) refused(id ids.Slice) *pb.Refusal {
	if s.loop.Published(id).Serves(s.clock()) {
		return nil
	}
	return s.notActive(id)
}

func (s *Server) notActive(id ids.Slice) *pb.Refusal {
	var row *geoconfig.SliceRow
	if known, ok := s.directory.Slice(id); ok {
		row = &known
	}
	return reading.Refusal(fault.NotActive, row, "this node does not act for the slice now")
}

// claim takes in what a client had before a takeover: locks, and files that it
// has open, whose last name may be gone.
func (s *Server) claim(ctx context.Context, w *identity.Who, req *pb.ClaimRequest) (proto.Message, error) {
	if err := w.Is(req.Client); err != nil {
		return nil, err
	}
	req.Client = w.Client
	id := ids.Slice(req.Slice)
	if refused := s.refused(id); refused != nil {
		return &pb.ClaimResponse{Refusal: refused}, nil
	}
	who, out := s.asker(w, nil), &pb.ClaimResponse{}
	claimed := make([]lock.Lock, 0, len(req.Locks))
	for _, l := range req.Locks {
		if s.reading.Reached(ctx, &who, ids.Object(l.Object), shown(req.Tickets, l.Object)) != nil {
			out.Lost = append(out.Lost, l)
			continue
		}
		claimed = append(claimed, lockOf(req.Client, l))
	}
	s.locks.mu.Lock()
	ended, err := s.beginLocks(req.Client, req.Session)
	var lost []lock.Lock
	if err == nil {
		lost = s.locks.table.Claim(claimed)
	}
	s.locks.mu.Unlock()
	s.lockEnded(ended)
	if err != nil {
		return nil, err
	}
	for i := range lost {
		out.Lost = append(out.Lost, lockTo(&lost[i]))
	}
	for _, o := range req.Open { // a lease makes the last unlink ask who has it open
		if s.reading.Reached(ctx, &who, ids.Object(o), shown(req.Tickets, o)) == nil {
			s.sessions.Grant(req.Session, id, 0, ids.Object(o), pb.Grant_FILE)
		}
	}
	return out, ctx.Err()
}

// sessionEnded lets go of what a client had under a session: its locks, and
// its open files where it has no other session here.
func (s *Server) sessionEnded(client, session uint64) {
	s.locks.mu.Lock()
	ended := s.locks.table.End(client, session)
	s.locks.mu.Unlock()
	s.lockEnded(ended)
	if !s.sessions.Live(client) {
		s.goRun(func(ctx context.Context) { s.releaseHolds(ctx, client) })
	}
}

// lockRole follows this node's part in a slice: a new active gives holders one
// lease to claim their locks, a former one lets all go. One that only stops for a
// while keeps what is held, since its clients may not hear of that.
func (s *Server) lockRole(r *replica.Role, led bool) {
	s.locks.mu.Lock()
	var refused []*lock.Waiter
	if r.Kind == replica.RoleLeading && !led {
		s.locks.table.AwaitClaims(r.Slice, int64(s.clock()+s.config.Session))
	} else if r.Kind != replica.RoleLeading && r.Row.StaysActive(s.id) {
		refused = s.locks.table.RefuseWaiting(r.Slice)
	} else if r.Kind != replica.RoleLeading {
		refused = s.locks.table.ReleaseSlice(r.Slice)
	}
	s.locks.mu.Unlock()
	for _, w := range refused {
		if a := w.Tag.(*awaiting); a.stop() {
			a.r.Reply(&pb.LockResponse{Refusal: s.notActive(r.Slice)})
		}
	}
}

// mayCommit is asked when a client's write is about to be ordered: one that was
// sent under a session with which the client lost a lock on the file fails. The
// client has not heard of it yet. What the lock protected may have changed.
func (s *Server) mayCommit(op *operate.Operation) error {
	commit := op.Op.GetCommit()
	if commit == nil || op.Client == 0 {
		return nil
	}
	s.locks.mu.Lock()
	defer s.locks.mu.Unlock()
	if !s.locks.table.Lost(op.Client, op.Session, ids.Object(commit.Object)) {
		return nil
	}
	return fault.E(fault.LostLock, "server.Operate", "", "a lock on the file was lost: what it protected may have changed")
}
