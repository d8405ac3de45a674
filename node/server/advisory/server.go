// Package advisory keeps the advisory locks of programs on files (flock, fcntl)
// at the slice's active, and lets go of what a client held once its session is
// over: its locks and its open files. Package lock has the table and its rules;
// this package joins it to requests, sessions and the node's part in a slice. A
// Server is safe for concurrent use.
package advisory

import (
	"context"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
)

// Sessions are the clients' sessions with this node.
type Sessions interface {
	// Valid answers nil where the session is the client's and lives.
	Valid(session, client uint64) error
	Opened(session uint64, o ids.Object) bool
	Grant(session uint64, slice ids.Slice, epoch ids.Epoch, o ids.Object, what pb.Grant_What) *pb.Grant
}

// Reading says who may reach an object, and for which slices this node acts.
type Reading interface {
	HasReached(who *reading.Asker, o ids.Object, ticket []byte) bool
	Reached(ctx context.Context, who *reading.Asker, o ids.Object, ticket []byte) error
	// Refused answers nil while this node may act for the slice.
	Refused(ids.Slice) *pb.Refusal
	NotActive(ids.Slice) *pb.Refusal
}

// Options are what a Server is made of. Every field is needed.
type Options struct {
	Self     ids.Node
	Limits   lock.Config
	Sessions Sessions
	Reading  Reading
	// Client returns which client a peer is.
	Client func(peer string) (*identity.Who, error)
	// Asker is a client as it asks the reading side.
	Asker func(*identity.Who) reading.Asker
	// ClaimTime is how long holders may claim their locks from a new active.
	ClaimTime time.Duration
	Clock     func() time.Duration
	// Go runs a function on a goroutine that ends with the node.
	Go func(func(context.Context))
}

// Server owns the table of advisory locks. Its mutex is held while that of the
// sessions is taken, never the other way about.
type Server struct {
	o Options

	mu    sync.Mutex // guards table
	table *lock.Table
}

// New returns a server without locks.
func New(o Options) *Server { return &Server{o: o, table: lock.New(o.Limits)} }

// Len returns how many locks are held here and how many requests wait for one.
func (s *Server) Len() (held, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Len()
}

// EndSession drops what a client had under a session. The sessions call it; it
// answers requests but does not wait.
func (s *Server) EndSession(client, session uint64) {
	s.mu.Lock()
	ended := s.table.End(client, session)
	s.mu.Unlock()
	s.answerEnded(ended)
}

// FollowRole follows this node's part in a slice: a new active gives holders one
// session's time to claim their locks, a former one drops all. A node that only
// stops for a while keeps what is held, since its clients may not hear of that.
// led says that this node led the slice before. It is called on the loop's
// goroutine.
func (s *Server) FollowRole(r *replica.Role, led bool) {
	s.mu.Lock()
	var refused []*lock.Waiter
	if r.Kind == replica.RoleLeading && !led {
		s.table.AwaitClaims(r.Slice, int64(s.o.Clock()+s.o.ClaimTime))
	} else if r.Kind != replica.RoleLeading && r.Row.StaysActive(s.o.Self) {
		refused = s.table.RefuseWaiting(r.Slice)
	} else if r.Kind != replica.RoleLeading {
		refused = s.table.ReleaseSlice(r.Slice)
	}
	s.mu.Unlock()
	for _, w := range refused {
		if a := w.Tag.(*awaiting); a.stop() {
			a.r.Reply(&pb.LockResponse{Refusal: s.o.Reading.NotActive(r.Slice)})
		}
	}
}

// MayCommit reports whether a client's write may be ordered. It answers LostLock
// if the client lost a lock on the file with the session of the write: what the
// lock protected may have changed, and the client has not heard of it yet. The
// loop calls it on its own goroutine.
func (s *Server) MayCommit(op *operate.Operation) error {
	commits := func(o *pb.Operation) bool { return o.GetCommit() != nil }
	if op.Client == 0 || !method.Any(op.Op, commits) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !method.Any(op.Op, func(o *pb.Operation) bool {
		return commits(o) && s.table.Lost(op.Client, op.Session, ids.Object(o.GetCommit().Object))
	}) {
		return nil
	}
	return fault.E(fault.LostLock, "advisory.MayCommit", "", "a lock on the file was lost: what it protected may have changed")
}
