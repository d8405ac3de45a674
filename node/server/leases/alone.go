package leases

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
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

// Born implements operate.Leases.
func (s *Sessions) Born(id uint64, epoch ids.Epoch, dirs []ids.Object) (out []*pb.Grant) {
	p := s.o.Published(dirs[0].Slice())
	now := s.now()
	if !p.Serves(time.Duration(now)) {
		return nil
	}
	s.mu.Lock()
	if l := s.live[lease.ID(id)]; l != nil && int64(p.Until()) >= l.end {
		for _, o := range dirs {
			names, alone, ok := s.table.Born(lease.ID(id), o, now)
			if !ok {
				continue
			}
			out = append(out, &pb.Grant{Object: uint64(o), What: pb.Grant_NAMES, Serial: names, Session: id, Epoch: uint64(epoch)},
				&pb.Grant{Object: uint64(o), What: pb.Grant_ALONE, Serial: alone, Session: id, Epoch: uint64(epoch)})
		}
	}
	evicted := s.table.Evict()
	s.mu.Unlock()
	s.send(evicted)
	return out
}

// Unborn implements operate.Leases.
func (s *Sessions) Unborn(grants []*pb.Grant) {
	s.mu.Lock()
	var ready []*lease.Change
	for _, g := range grants {
		ready = append(ready, s.table.Unborn(lease.ID(g.Session), ids.Object(g.Object))...)
	}
	s.mu.Unlock()
	run(ready)
}

// Alone reports whether a client's session has a directory exclusively. Its user
// has reached the directory then.
func (s *Sessions) Alone(id, client uint64, dir ids.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Alone(lease.ID(id), client, dir, s.now())
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
		c.Tag = &waiting{then: func([]tree.Holder) { then() }}
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
