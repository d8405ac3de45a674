package server

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/operate"
)

const (
	// stallAfter is how long a disk may take before the node ends: its slices
	// have long been taken over, and what it would write late helps nobody.
	stallAfter = 30 * time.Second
	// stallLooks is how often it looks in that time.
	stallLooks = 30
)

// stall notices that the loop or its log makes no progress. It counts looks and
// reads no clock: a machine that was suspended has not looked meanwhile.
type stall struct {
	last operate.Progress
	same int // looks since something moved
}

// look reports whether nothing moved for too many looks. A log that waits for
// room is full, not stalled.
func (s *stall) look(now operate.Progress, full bool) bool {
	stands := now.Turns == s.last.Turns || now.Appended > now.Written && now.Written == s.last.Written && !full
	s.last = now
	if !stands {
		s.same = 0
		return false
	}
	s.same++
	return s.same >= stallLooks
}

// mindStalls ends the node once its disk has not answered for too long.
func (s *Server) mindStalls(ctx context.Context) {
	every := s.deps.StallAfter / stallLooks
	tick := time.NewTicker(every)
	defer tick.Stop()
	var w stall
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.look(s.loop.Progress(), s.store.Room(0) != nil) {
			s.fail(fault.Errorf(fault.IO, "server.mindStalls", s.config.Data, "the disk has not answered for %v: look after it, then start the node again", s.deps.StallAfter))
			return
		}
	}
}
