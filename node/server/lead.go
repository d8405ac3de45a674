package server

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
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
	s.intents.Resume(id)
	select {
	case <-ctx.Done():
		return
	case <-time.After(s.config.Session + s.config.Lease):
	}
	s.holds.ReleaseAbsent(ctx, id)
}

// format gives an empty slice its first entry.
func (s *Server) format(ctx context.Context, id ids.Slice) error {
	state, err := tree.ReadState(s.committed(id))
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

// sessionEnded drops what a client had under a session: its locks, and its open
// files where it has no other session here.
func (s *Server) sessionEnded(client, session uint64) {
	s.locks.EndSession(client, session)
	if s.sessions.Live(client) {
		return
	}
	s.life.spawn(func(ctx context.Context) {
		for _, row := range s.leading() {
			s.holds.Release(ctx, row.ID, client)
		}
	})
}

// committed is what this node's own copy of a slice shows.
func (s *Server) committed(id ids.Slice) tree.View { return operate.Committed(s.store.Meta(), id) }
