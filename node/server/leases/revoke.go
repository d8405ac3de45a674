package leases

import (
	"context"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
)

// resend is how long after a revocation that got no answer it is sent again.
const resend = 200 * time.Millisecond

// send sends revocations. One without an answer is sent again as long as the
// session lives: its end answers too.
func (s *Sessions) send(revocations []lease.Revocation) {
	for _, r := range revocations {
		s.sendOne(r)
	}
}

// sendOne sends a revocation, unless its session has ended.
func (s *Sessions) sendOne(r lease.Revocation) {
	s.mu.Lock()
	l := s.live[r.Session]
	peer := ""
	if l != nil && l.end > s.now() {
		peer = l.peer
	}
	s.mu.Unlock()
	if peer == "" {
		return
	}
	request := &pb.RevokeRequest{Session: uint64(r.Session), Serial: r.Serial, Items: r.Items}
	err := s.o.Caller.Start(peer, wire.Beacon, method.Revoke, request, nil, time.Second, func(a *wire.Answer) {
		var answer pb.RevokeResponse
		if err := a.Err; err != nil || a.Decode(&answer) != nil {
			time.AfterFunc(resend, func() { s.sendOne(r) })
			return
		}
		a.Body.Release()
		held := make([]ids.Object, len(answer.Held))
		for i, o := range answer.Held {
			held[i] = ids.Object(o)
		}
		s.mu.Lock()
		ready := s.table.Answer(r.Session, r.Serial, held)
		s.mu.Unlock()
		run(ready)
	})
	if err != nil {
		time.AfterFunc(resend, func() { s.sendOne(r) })
	}
}

// RevokeSlice takes back all leases of a slice that is handed over. It calls then
// once all are answered or have run out, unless the hand-over is given up before.
func (s *Sessions) RevokeSlice(ctx context.Context, slice ids.Slice, then func()) {
	s.mu.Lock()
	revocations := s.table.RevokeSlice(slice)
	s.mu.Unlock()
	s.send(revocations)
	go func() {
		if s.awaitRevoked(ctx, slice) {
			then()
		}
	}()
}

// awaitRevoked waits until no lease of a slice is left, and reports whether the
// slice is still being handed over. One that is not grants leases again, which
// may never end.
func (s *Sessions) awaitRevoked(ctx context.Context, slice ids.Slice) bool {
	if plant.On(plant.SessionYieldsAtOnce) {
		return true
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if p := s.o.Published(slice); p == nil || p.Role != replica.RoleYielding {
			return false
		}
		s.mu.Lock()
		left := len(s.table.Handover(slice, s.now()))
		s.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
