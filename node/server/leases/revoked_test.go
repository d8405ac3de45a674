package leases

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
)

// leased is a Sessions whose only client holds a lease in slice 1, which it does
// not give back, and this node's part in the slice.
func leased(t *testing.T) (s *Sessions, id lease.ID, part *atomic.Pointer[operate.Published]) {
	t.Helper()
	part = &atomic.Pointer[operate.Published]{}
	part.Store(&operate.Published{Slice: 1, Role: replica.RoleYielding})
	s = New(Options{Config: lease.Config{Length: int64(time.Hour), MaxSessions: 1, MaxLeases: 1}, First: 1,
		Clock:     func() time.Duration { return time.Second },
		Published: func(ids.Slice) *operate.Published { return part.Load() }})
	id, _, _, err := s.table.KeepAlive(0, 7, int64(time.Hour), s.now())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.table.Grant(id, ids.NewObject(1, 5), pb.Grant_FILE, s.now()); !ok {
		t.Fatal("no lease was granted")
	}
	return s, id, part
}

// awaited runs awaitRevoked and gives its answer.
func awaited(t *testing.T, s *Sessions) <-chan bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out := make(chan bool, 1)
	go func() { out <- s.awaitRevoked(ctx, 1) }()
	return out
}

func answer(t *testing.T, from <-chan bool) bool {
	t.Helper()
	select {
	case yes := <-from:
		return yes
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits for the lease")
		return false
	}
}

func TestAwaitRevoked_EndsWithTheHandOver(t *testing.T) {
	s, _, part := leased(t)
	done := awaited(t, s)
	part.Store(&operate.Published{Slice: 1, Role: replica.RoleLeading})
	if answer(t, done) {
		t.Error("the slice is said to be without leases, but one is left")
	}
}

func TestAwaitRevoked_WaitsForTheLastLease(t *testing.T) {
	s, id, _ := leased(t)
	ended, end := context.WithCancel(context.Background())
	end()
	if s.awaitRevoked(ended, 1) {
		t.Error("it does not wait for the lease")
	}
	done := awaited(t, s)
	s.mu.Lock()
	s.table.Close(id, 7)
	s.mu.Unlock()
	if !answer(t, done) {
		t.Error("the slice is said to have leases after the last one went")
	}
}
