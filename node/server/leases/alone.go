package leases

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// GrantAlone gives a session a lease of kind ALONE on a directory, or nil where
// it cannot have one now.
func (s *Sessions) GrantAlone(id uint64, epoch ids.Epoch, dir ids.Object) *pb.Grant {
	p := s.o.Published(dir.Slice())
	now := s.now()
	if !p.Serves(time.Duration(now)) {
		return nil
	}
	s.mu.Lock()
	l := s.live[lease.ID(id)]
	var serial uint64
	ok := l != nil && int64(p.Until()) >= l.end
	if ok {
		serial, ok = s.table.GrantAlone(lease.ID(id), dir, now)
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return &pb.Grant{Object: uint64(dir), What: pb.Grant_ALONE, Serial: serial, Session: id, Epoch: uint64(epoch)}
}

// Share begins a read or a change of directories' names by a session; 0: by no
// session. Where another session has one of them exclusively, its client is asked
// to publish what it made there. Share is then not ready, and calls then once the
// client has, or its session has ended. The mark, unless it is 0, ends with
// Changed.
func (s *Sessions) Share(id uint64, dirs []ids.Object, then func()) (mark uint64, ready bool) {
	s.mu.Lock()
	c, revocations := s.table.Share(dirs, lease.ID(id), s.now())
	if c == nil {
		s.mu.Unlock()
		return 0, true
	}
	s.mark++
	mark = s.mark
	s.marks[mark] = c
	if ready = c.Ready(); !ready {
		c.Tag = &waiting{then: func([]uint64) { then() }}
	}
	s.mu.Unlock()
	s.send(revocations)
	return mark, ready
}

// sharedWithin is how long a reader waits for a client that has a directory
// exclusively. It is longer than two sessions, after which no client has.
const sharedWithin = 10 * time.Second

// Shared implements reading.Leases.
func (s *Sessions) Shared(ctx context.Context, id uint64, dirs ...ids.Object) (end func(), err error) {
	done := make(chan struct{})
	mark, ready := s.Share(id, dirs, func() { close(done) })
	end = func() {
		if mark != 0 {
			s.Changed(mark)
		}
	}
	if ready {
		return end, nil
	}
	// The client that is alone publishes with requests that need workers too.
	resume, err := wire.Yield(ctx)
	if err != nil {
		end()
		return nil, err
	}
	defer resume()
	limit := time.NewTimer(sharedWithin)
	defer limit.Stop()
	select {
	case <-done:
		return end, nil
	case <-limit.C:
	case <-ctx.Done():
	}
	end()
	return nil, fault.E(fault.Again, "leases.Shared", dirs[0].String(), "another client works alone in the directory and does not answer")
}
