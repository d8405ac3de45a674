package wire

import (
	"sync"
	"testing"
	"time"
)

// testHost makes a host that listens on loopback.
func testHost(t *testing.T) *Host {
	t.Helper()
	key, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	times := DefaultTimes()
	times.Heartbeat, times.Silence = 50*time.Millisecond, 250*time.Millisecond
	h, err := New(Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Times: times})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Inline(1, func(r *Request) { r.Reply(nil) })
	if err := h.Listen(); err != nil {
		t.Fatal(err)
	}
	return h
}

// eventually polls for ten seconds at most.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited too long for %s", what)
}

// TestPeers_BothEndsChooseOneConnection forces both to dial at once: they settle
// on the connection that the smaller ID dialled and give up the other.
func TestPeers_BothEndsChooseOneConnection(t *testing.T) {
	for range 3 {
		a, b := testHost(t), testHost(t)
		if err := a.AddPeer(b.id, b.Addresses()); err != nil {
			t.Fatal(err)
		}
		if err := b.AddPeer(a.id, a.Addresses()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, ends := range [][2]*Host{{a, b}, {b, a}} {
			wg.Add(1)
			go func() { // past the check for a connection, as a race would be
				defer wg.Done()
				p := ends[0].peers[ends[1].id]
				ends[0].runDial(p, Operation, &dial{done: make(chan struct{})}, p.addresses)
			}()
		}
		wg.Wait()
		links := func(h *Host, peer string) int {
			h.mu.RLock()
			defer h.mu.RUnlock()
			return len(h.peers[peer].links[Operation])
		}
		eventually(t, "both connections at both ends", func() bool { return links(a, b.id) == 2 && links(b, a.id) == 2 })
		la, lb := a.currentLink(b.id, Operation), b.currentLink(a.id, Operation)
		if la.conn.LocalAddr().String() != lb.conn.RemoteAddr().String() {
			t.Error("the ends chose different connections")
		}
		if la.outbound != (a.id < b.id) {
			t.Error("they chose the one of the larger ID")
		}
		eventually(t, "the other to be given up", func() bool { return links(a, b.id) == 1 && links(b, a.id) == 1 })
		if a.currentLink(b.id, Operation) != la || b.currentLink(a.id, Operation) != lb || la.dead.Load() {
			t.Error("the chosen connection did not stay")
		}
		if _, err := a.Call(t.Context(), b.id, Operation, 1, nil, nil, nil); err != nil {
			t.Error(err)
		}
	}
}
