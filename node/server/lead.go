package server

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// lead is what a new active does first: it formats a slice that is empty, and
// later lets go of open files whose clients do not come back.
func (s *Server) lead(ctx context.Context, id ids.Slice) {
	if err := s.format(ctx, id); err != nil && ctx.Err() == nil {
		s.log.Error("a new slice could not be prepared", "slice", uint32(id), "error", err)
		return
	}
	s.intents.resume(id)
	select {
	case <-ctx.Done():
		return
	case <-time.After(s.config.Session + s.config.Lease):
	}
	holders, err := tree.Holders(operate.Committed(s.store.Meta(), id))
	if err != nil {
		s.log.Error("the holders of open files could not be read", "error", err)
		return
	}
	for _, client := range holders {
		if !s.sessions.Live(client) {
			s.releaseHoldsIn(ctx, id, client)
		}
	}
}

// format gives an empty slice its first entry.
func (s *Server) format(ctx context.Context, id ids.Slice) error {
	state, err := tree.ReadState(operate.Committed(s.store.Meta(), id))
	if err != nil || state.Next != 0 {
		return err
	}
	done := make(chan error, 1)
	s.loop.Format(id, s.deps.Wall().UnixNano(), func(err error) { done <- err })
	select {
	case err := <-done:
		if fault.Is(err, fault.NotActive) {
			return nil // whoever acts now does it
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// releaseHolds lets a client's open files go in every slice that this node
// acts for.
func (s *Server) releaseHolds(ctx context.Context, client uint64) {
	for _, row := range s.leading() {
		s.releaseHoldsIn(ctx, row.ID, client)
	}
}

func (s *Server) releaseHoldsIn(ctx context.Context, id ids.Slice, client uint64) {
	objects, err := tree.Holds(operate.Committed(s.store.Meta(), id), client)
	if err != nil {
		s.log.Error("a client's open files could not be read", "error", err)
		return
	}
	for _, o := range objects {
		op := &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: client, Release: true}}}
		if _, err := s.propose(ctx, id, op, 0, 0); err != nil && ctx.Err() == nil {
			s.log.Debug("an open file could not be let go", "object", o.String(), "error", err)
		}
	}
}

// propose runs an internal operation at a slice that this node acts for and
// waits for its answer. With client and number it decides that operation.
func (s *Server) propose(ctx context.Context, id ids.Slice, op *pb.Operation, client, number uint64) (operate.Answer, error) {
	done := make(chan operate.Answer, 1)
	s.loop.Operate(&operate.Operation{Slice: id, Op: op, Internal: true, Trusted: true, Client: client, Number: number,
		Done: func(_ *operate.Operation, a operate.Answer) { done <- a }})
	select {
	case a := <-done:
		if a.Refused != nil {
			return a, fault.E(fault.Kind(a.Refused.Kind), "server.propose", "", a.Refused.Why)
		}
		return a, a.Err
	case <-ctx.Done():
		return operate.Answer{}, fault.Wrap(fault.TimedOut, "server.propose", "", ctx.Err())
	}
}
