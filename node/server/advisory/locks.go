package advisory

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// opLock is the operation in the errors of every lock request.
const opLock fault.Op = "advisory.Lock"

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

// Set answers a LockRequest at once, or leaves it in the table, which answers it
// later. It may run on the goroutine that reads the connection.
func (s *Server) Set(r *wire.Request) {
	var req pb.LockRequest
	w, err := s.lockRequest(r, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	id := ids.Slice(req.Slice)
	if refused := s.o.Reading.Refused(id); refused != nil {
		r.Reply(&pb.LockResponse{Refusal: refused})
		return
	}
	who, o := s.o.Asker(w), ids.Object(req.Lock.Object)
	if s.o.Reading.HasReached(&who, o, req.Ticket) {
		s.putLock(r, &req)
		return
	}
	s.o.Go(func(context.Context) {
		if err := s.o.Reading.Reached(r.Context(), &who, o, nil); err != nil {
			r.Fail(err)
			return
		}
		s.putLock(r, &req)
	})
}

// putLock brings a request that is allowed to the table.
func (s *Server) putLock(r *wire.Request, req *pb.LockRequest) {
	id, l := ids.Slice(req.Slice), lockOf(req.Client, req.Lock)
	s.mu.Lock()
	ended, err := s.beginLocked(req.Client, req.Session)
	var out lock.Outcome
	switch {
	case err != nil:
		out.Err = err
	case req.Test:
		out.Conflict, out.Err = s.table.Test(l)
		out.Granted = out.Conflict == nil
	default:
		out = s.table.Set(l, req.Wait, int64(s.o.Clock()))
	}
	if out.Waiter != nil {
		r.Park()
		w := &awaiting{s: s, r: r, lock: l, slice: id}
		out.Waiter.Tag = w
		w.stop = context.AfterFunc(r.Context(), func() { w.giveUp(out.Waiter) })
	}
	s.mu.Unlock()
	s.answerEnded(ended)
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
	w, err := s.o.Client(r.Peer)
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
		return nil, fault.E(fault.Invalid, opLock, "", "the request names no lock")
	}
	return w, nil
}

// beginLocked notes under which session a client asks for locks; s.mu is held. A
// session that lives now has its end still to come, and that comes to the table
// after this.
func (s *Server) beginLocked(client, session uint64) (lock.Ended, error) {
	if err := s.o.Sessions.Valid(session, client); err != nil {
		return lock.Ended{}, err
	}
	return s.table.Begin(client, session)
}

// answerLock answers what the table says, if the table still counts: where the
// lease has lapsed meanwhile, another node may give the lock to another client.
// The lock stays in this table, so that the same request finds it if this node
// goes on, and goes with the session or with the slice.
func (s *Server) answerLock(r *wire.Request, id ids.Slice, answer *pb.LockResponse) {
	if refused := s.o.Reading.Refused(id); refused != nil {
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

// answerEnded answers the requests that the end of a session concerns.
func (s *Server) answerEnded(e lock.Ended) {
	grant(e.Woken)
	for _, w := range e.Expired {
		if a := w.Tag.(*awaiting); a.stop() {
			a.r.Fail(fault.E(fault.Expired, opLock, a.lock.Object.String(), "the session has ended: open another and ask again"))
		}
	}
}

// giveUp takes a request out of the table whose caller does not wait any more,
// and undoes a grant that came at the same moment.
func (a *awaiting) giveUp(w *lock.Waiter) {
	a.s.mu.Lock()
	var woken []*lock.Waiter
	if !a.s.table.Cancel(w) {
		undo := a.lock
		undo.Type = lock.Unlock
		woken = a.s.table.Set(undo, false, int64(a.s.o.Clock())).Woken
	}
	a.s.mu.Unlock()
	grant(woken)
	a.r.Fail(fault.E(fault.Interrupted, opLock, a.lock.Object.String(), "the caller gave up"))
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
