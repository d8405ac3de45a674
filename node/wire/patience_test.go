package wire

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/node/wire/framing"
)

// TestPatient_EndsWhenNothingComes has a peer that sends for a while, and then only
// heartbeats.
func TestPatient_EndsWhenNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall, each = 5 * time.Second, 100
		began, sends := time.Now(), time.Minute
		came := func() uint64 {
			gone := time.Since(began)
			return uint64(min(gone, sends)/time.Second)*lifeSign + uint64(gone/time.Second)*each
		}
		ctx, cancel := patient(context.Background(), came, stall, time.Hour)
		defer cancel()
		time.Sleep(sends - time.Second)
		if ctx.Err() != nil {
			t.Fatal("it ended while bytes came")
		}
		<-ctx.Done()
		if took := time.Since(began); took > sends+2*stall {
			t.Errorf("it ended %v after the last bytes, want at most two stalls", took-sends)
		}
	})
}

func TestPatient_HasAnEndAndItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Uint64
		came := func() uint64 { return n.Add(lifeSign) }
		began := time.Now()
		ctx, cancel := patient(context.Background(), came, time.Second, time.Minute)
		<-ctx.Done()
		cancel()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("a connection that always moves: it ended after %v, want a minute", took)
		}
		above, end := context.WithCancel(context.Background())
		ctx, cancel = patient(above, came, time.Second, time.Minute)
		defer cancel()
		end()
		if ctx.Err() == nil {
			t.Error("it outlives its caller's context")
		}
	})
}

func TestGrace_ExtendsWhileBytesCome(t *testing.T) {
	g := grace{each: 10, left: 2, came: 1000}
	deadline := int64(10)
	for i, want := range []struct {
		came  uint64
		more  bool
		until int64
	}{{1000 + lifeSign, true, 20}, {1000 + 2*lifeSign - 1, false, 20}, {1000 + 2*lifeSign, true, 30}, {1000 + 9*lifeSign, false, 30}} {
		if more := g.extend(&deadline, want.came); more != want.more || deadline != want.until {
			t.Errorf("question %d: %v until %d, want %v until %d", i, more, deadline, want.more, want.until)
		}
	}
}

// TestExpire_WaitsWhileBytesCome looks at a call of Start whose time is over.
func TestExpire_WaitsWhileBytesCome(t *testing.T) {
	var ended error
	c := &call{id: 1, class: Chunk, deadline: 10, grace: grace{each: 10, left: mostGrace}, then: func(a *Answer) { ended = a.Err }}
	l := &link{host: &Host{}, peer: &peerState{}, class: Chunk, conn: &directConn{raw: &raw{}}, queue: framing.NewQueue(1 << 10),
		limits: &ClassLimits{Header: 1 << 10, Body: 1 << 10}, calls: callTable{pending: map[uint64]*call{1: c}, timed: 1}}
	l.conn.raw.came.Store(lifeSign)
	if l.expire(10); ended != nil || c.deadline != 20 {
		t.Fatalf("it ended (%v), or has until %d, though its connection moves", ended, c.deadline)
	}
	if l.expire(20); ended == nil || len(l.calls.pending) != 0 {
		t.Error("it goes on though nothing comes")
	}
}
