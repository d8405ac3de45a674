package session

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// farNode is a node at the end of a way of its own, with the table that nodes
// keep. Its limit is what it may act for when it is asked.
type farNode struct {
	began time.Time
	limit time.Duration

	mu     sync.Mutex // guards below
	table  *lease.Table
	way    time.Duration // one way
	cut    bool
	under  int
	most   int // at once
	opened int // sessions
	list   uint64
	except []uint32
	lists  int // given
}

const client = 7

func (n *farNode) Client() uint64 { return client }

func (n *farNode) now() time.Duration { return time.Since(n.began) }

func (n *farNode) Call(ctx context.Context, _ ids.Node, _ wire.Class, _ wire.Method, req proto.Message, _ [][]byte, resp proto.Message) (*wire.Buffer, error) {
	n.mu.Lock()
	n.under++
	n.most = max(n.most, n.under)
	way, cut := n.way, n.cut
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.under--
	}()
	if cut {
		way = time.Hour
	}
	if err := pass(ctx, way); err != nil {
		return nil, err
	}
	asked := req.(*pb.KeepAliveRequest)
	n.mu.Lock()
	id, left, _, err := n.table.KeepAlive(lease.ID(asked.Session), client, int64(n.limit), int64(n.now()))
	if uint64(id) != asked.Session {
		n.opened++
	}
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a := resp.(*pb.KeepAliveResponse)
	a.Session, a.LeftNs = uint64(id), left
	n.mu.Lock()
	if a.List = n.list; n.list == 0 || n.list != asked.List {
		a.Excepted = n.except
		n.lists++
	}
	n.mu.Unlock()
	return nil, pass(ctx, way)
}

func (n *farNode) set(way time.Duration, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.way, n.cut = way, cut
}

// counts returns the most keep-alives at once and the sessions opened.
func (n *farNode) counts() (most, opened int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most, n.opened
}

// pass is the time that a message is on its way.
func pass(ctx context.Context, way time.Duration) error {
	t := time.NewTimer(way)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.TimedOut, "far", "", ctx.Err())
	}
}

// elapse lets the bubble's time pass.
func elapse(t *testing.T, d time.Duration) {
	t.Helper()
	if err := pass(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// held runs f beside a Manager that holds a session with a node.
func held(t *testing.T, way, limit time.Duration, f func(t *testing.T, m *Manager, n *farNode, lapsed func() int)) {
	t.Helper()
	heldBy(t, way, limit, func(node time.Duration) time.Duration { return node }, f)
}

// heldBy is held with a client whose clock shows what clock makes of the node's.
func heldBy(t *testing.T, way, limit time.Duration, clock func(node time.Duration) time.Duration,
	f func(t *testing.T, m *Manager, n *farNode, lapsed func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &farNode{began: time.Now(), way: way, limit: limit, table: lease.New(lease.DefaultConfig(), 1)}
		var mu sync.Mutex
		lapses := 0
		m := New(n, func() time.Duration { return clock(n.now()) }, Handlers{Lapsed: func(ids.Node) {
			mu.Lock()
			defer mu.Unlock()
			lapses++
		}}, slog.New(slog.DiscardHandler))
		defer m.Close()
		if m.With(t.Context(), "far") == 0 {
			t.Fatal("no session was opened")
		}
		f(t, m, n, func() int { mu.Lock(); defer mu.Unlock(); return lapses })
	})
}

func TestSession_OutlivesALongPath(t *testing.T) {
	// Beside a full line of 300 ms a round trip takes 1.2 s, and a node whose
	// own lease is renewed over it may act for little longer.
	held(t, 600*time.Millisecond, 1400*time.Millisecond, func(t *testing.T, _ *Manager, n *farNode, lapsed func() int) {
		elapse(t, time.Minute)
		most, opened := n.counts()
		if got := lapsed(); got > 0 || opened != 1 {
			t.Errorf("the session lapsed %d times, and the node opened %d", got, opened)
		}
		if most < 2 || most > maxUnder {
			t.Errorf("%d keep-alives were under way at once, want 2 to %d", most, maxUnder)
		}
	})
}

func TestSession_LapsesOnceAndIsOpenedAnew(t *testing.T) {
	held(t, 10*time.Millisecond, 3*time.Second, func(t *testing.T, m *Manager, n *farNode, lapsed func() int) {
		before := m.With(t.Context(), "far")
		n.set(0, true)
		elapse(t, 10*time.Second)
		if got := lapsed(); got != 1 {
			t.Errorf("lapsed %d times, want once", got)
		}
		if most, _ := n.counts(); most > maxUnder {
			t.Errorf("%d keep-alives were under way at once, want at most %d", most, maxUnder)
		}
		n.set(10*time.Millisecond, false)
		elapse(t, 5*time.Second)
		if after := m.With(t.Context(), "far"); after == 0 || after == before {
			t.Errorf("the session is %d, was %d", after, before)
		}
		elapse(t, 10*time.Second)
		if got := lapsed(); got != 1 {
			t.Errorf("lapsed %d times when all was well again", got-1)
		}
	})
}

func TestSession_ASlowClockEndsItBeforeItsNode(t *testing.T) {
	slow := func(node time.Duration) time.Duration { return node * 95 / 100 }
	for _, limit := range []time.Duration{time.Second, 3 * time.Second} {
		heldBy(t, time.Millisecond, limit, slow, func(t *testing.T, m *Manager, n *farNode, _ func() int) {
			s := m.session("far")
			id := lease.ID(s.number.Load())
			n.set(0, true)
			for n.table.Valid(id, client, int64(n.now())) {
				elapse(t, time.Millisecond)
			}
			if left := time.Duration(s.expires.Load()) - m.now(); left > 0 {
				t.Errorf("the node ended the session of %v, and the client believes in it for another %v", limit, left)
			}
		})
	}
}

func TestKeepAlive_LateAnswerMovesNoEndBack(t *testing.T) {
	held(t, time.Millisecond, 3*time.Second, func(t *testing.T, m *Manager, n *farNode, _ func() int) {
		s := m.session("far")
		n.set(700*time.Millisecond, false)
		elapse(t, period) // one is under way now
		n.set(time.Millisecond, false)
		for range 40 {
			newest := s.expires.Load()
			elapse(t, period/16)
			if got := s.expires.Load(); got < newest {
				t.Fatalf("the session's end went back by %v", time.Duration(newest-got))
			}
		}
	})
}

// TestExceptions_StandUntilTheListChanges grants leases on two slices, one of
// which the node then excepts: it stays void over many keep-alives that bring no
// list, and the other stands. A list that excepts nothing gives it back.
func TestExceptions_StandUntilTheListChanges(t *testing.T) {
	held(t, 10*time.Millisecond, time.Hour, func(t *testing.T, m *Manager, n *farNode, _ func() int) {
		say := func(list uint64, except ...uint32) {
			n.mu.Lock()
			n.list, n.except, n.lists = list, except, 0
			n.mu.Unlock()
			elapse(t, 20*time.Second)
		}
		grant := func(slice ids.Slice) Stamp {
			st, _ := m.Accept("far", m.Before(), &pb.Grant{Object: uint64(ids.NewObject(slice, 5)), Session: m.Current("far"), Serial: 9})
			return st
		}
		valid := func(what string, got, want bool) {
			t.Helper()
			n.mu.Lock()
			defer n.mu.Unlock()
			if got != want || n.lists != 1 {
				t.Errorf("%s: valid: %v, want %v; the list came %d times, want once", what, got, want, n.lists)
			}
		}
		say(5)
		one, two := grant(1), grant(2)
		valid("before", m.Valid(one) && m.Valid(two), true)
		say(6, 2)
		valid("the slice that is not excepted", m.Valid(one), true)
		valid("the excepted slice", m.Valid(two), false)
		valid("a grant on the excepted slice", m.Valid(grant(2)), false)
		say(7)
		valid("what was granted before the exception", m.Valid(two), false)
		valid("a grant after it", m.Valid(grant(2)), true)
	})
}

// TestHurry_BringsTheListAtOnce has a node act for a slice that it excepted. A client that
// has heard of that need not wait for the next keep-alive to have leases there.
func TestHurry_BringsTheListAtOnce(t *testing.T) {
	const way = 10 * time.Millisecond
	held(t, way, time.Hour, func(t *testing.T, m *Manager, n *farNode, _ func() int) {
		say := func(list uint64, except ...uint32) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.list, n.except = list, except
		}
		say(1, 2)
		elapse(t, 2*period)
		valid := func() bool {
			st, _ := m.Accept("far", m.Before(), &pb.Grant{Object: uint64(ids.NewObject(2, 5)), Session: m.Current("far"), Serial: 9})
			return m.Valid(st)
		}
		for range 8 { // whenever the next one is due
			say(2)
			m.Hurry("far")
			m.Hurry("far")
			elapse(t, 3*way)
			if !valid() {
				t.Fatal("the slice is still excepted")
			}
			say(3, 2)
			elapse(t, period+3*way)
			if valid() {
				t.Fatal("the slice is not excepted again")
			}
			elapse(t, period/8)
		}
		m.Hurry("another node")
		if most, opened := n.counts(); most > 3 || opened != 1 {
			t.Errorf("%d keep-alives were under way at once, and %d sessions opened", most, opened)
		}
	})
}
