package wire_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// relayed lets every host of a mesh go through every other one, and relay for
// those that allowed accepts.
func relayed(t *testing.T, n int, allowed func(from, to string) error, more ...wiretest.Option) *wiretest.Mesh {
	t.Helper()
	var ids []string
	for i := range n {
		ids = append(ids, wiretest.Key(t, uint64(i)).KeyID())
	}
	if allowed == nil {
		allowed = func(string, string) error { return nil }
	}
	m := wiretest.New(t, n, append([]wiretest.Option{func(_ int, o *wire.Options) {
		o.Relays = func(context.Context, string) []string { return ids }
		o.MayRelay = allowed
	}}, more...)...)
	for _, h := range m.Hosts {
		h.Inline(echo, func(r *wire.Request) { r.Reply(nil, slices.Clone(r.Body())) })
		for _, o := range m.Hosts {
			if o != h {
				if err := h.Keep(o.KeyID(), true); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, h := range m.Hosts {
		wiretest.Wait(t, "a full mesh", func() bool { return len(h.Peers()) == n-1 && direct(h, m) })
	}
	return m
}

// direct reports whether a host reaches every other one the direct path.
func direct(h *wire.Host, m *wiretest.Mesh) bool {
	for _, o := range m.Hosts {
		if p, ok := h.Path(o.KeyID()); o != h && (!ok || p.Via != "") {
			return false
		}
	}
	return true
}

// sends reports whether a call with a body comes back whole.
func sends(t *testing.T, from, to *wire.Host, class wire.Class, size int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	body := slices.Repeat([]byte("spliced "), size/8)
	b, err := from.Call(ctx, to.KeyID(), class, echo, nil, [][]byte{body}, nil)
	defer b.Release()
	return err == nil && slices.Equal(b.Bytes(), body)
}

func TestRelay_ReplacesABrokenPathUntilItHeals(t *testing.T) {
	t.Parallel()
	for name, ways := range map[string][][2]int{"both ways": {{0, 1}, {1, 0}}, "one way": {{0, 1}}, "the other way": {{1, 0}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := relayed(t, 3, nil)
			a, b := m.Hosts[0], m.Hosts[1]
			for round := range 2 {
				for _, w := range ways {
					m.Cut(w[0], w[1], true)
				}
				for _, class := range []wire.Class{wire.Beacon, wire.Operation, wire.Chunk} {
					wiretest.Wait(t, "an answer through the relay", func() bool { return sends(t, a, b, class, 64<<10) })
					wiretest.Wait(t, "an answer the other way", func() bool { return sends(t, b, a, class, 64<<10) })
				}
				wiretest.Wait(t, "the path through the relay", func() bool {
					p, ok := a.Path(b.KeyID())
					return ok && (p.Via == m.Hosts[2].KeyID() || p.Via == "?")
				})
				for _, w := range ways {
					m.Cut(w[0], w[1], false)
				}
				wiretest.Wait(t, "the direct path to be taken again", func() bool { return direct(a, m) && direct(b, m) })
				if !sends(t, a, b, wire.Operation, 8) {
					t.Errorf("round %d: no answer the direct path", round)
				}
			}
		})
	}
}

func TestRelay_DirectPathIsTriedMeanwhile(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 8)
	m := wiretest.New(t, 2, func(_ int, o *wire.Options) {
		o.Times = wire.Times{Dial: time.Minute, Redial: 10 * time.Millisecond, Probe: time.Hour, Heartbeat: time.Second, Silence: 5 * time.Second}
		o.Relays = func(ctx context.Context, _ string) []string {
			asked <- struct{}{}
			<-ctx.Done()
			return nil
		}
	})
	a, b := m.Hosts[0], m.Hosts[1]
	serveEcho(b)
	m.Cut(0, 1, true)
	ctx := within(t, 20*time.Second)
	answered := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil)
		answered <- err
	}()
	<-asked // the direct path has failed
	m.Cut(0, 1, false)
	if err := <-answered; err != nil {
		t.Errorf("the direct path was healed while a relay was looked for: %v", err)
	}
}

func TestRelay_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	m := relayed(t, 3, nil)
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	wiretest.Wait(t, "an answer through the relay", func() bool { return sends(t, a, b, wire.Chunk, 1<<20) })
	m.Cut(0, 1, false)
	m.Cut(1, 0, false)
	wiretest.Wait(t, "the end of what went through the relay", func() bool {
		for _, h := range []*wire.Host{a, b, c} {
			for _, s := range h.Status() {
				if s.Relayed {
					return false
				}
			}
		}
		return true
	})
}

func TestRelay_MayRefuse(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]bool{}
	stranger := fault.E(fault.Unauthorized, "test", "", "a stranger")
	m := relayed(t, 3, func(from, to string) error {
		mu.Lock()
		defer mu.Unlock()
		asked[from+" "+to] = true
		return stranger
	})
	a, b := m.Hosts[0], m.Hosts[1]
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	wiretest.Wait(t, "the question", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked[a.KeyID()+" "+b.KeyID()]
	})
	wiretest.Wait(t, "the end of the silent connections", func() bool { return !a.Connected(b.KeyID(), wire.Operation) })
	if sends(t, a, b, wire.Operation, 8) {
		t.Error("a call came through")
	}
}

// TestRelay_PassesNothingOnForTheRefused has the relay's gater refuse everybody at once: what
// it passed on ends too.
func TestRelay_PassesNothingOnForTheRefused(t *testing.T) {
	t.Parallel()
	var shut atomic.Bool
	m := relayed(t, 3, nil, func(i int, o *wire.Options) {
		if i == 2 {
			o.Gater = func(id string) error {
				if shut.Load() {
					return fault.E(fault.Unreachable, "test", id, "nobody gets through")
				}
				return nil
			}
		}
	})
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	wiretest.Wait(t, "an answer through the relay", func() bool { return sends(t, a, b, wire.Operation, 8) })
	shut.Store(true)
	c.Recheck()
	wiretest.Wait(t, "the end of what went through the relay", func() bool {
		return c.Relayed() == 0 && !a.Connected(b.KeyID(), wire.Operation)
	})
}

func TestRelay_ConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	m := relayed(t, 3, nil, func(_ int, o *wire.Options) { o.Limits.Relayed, o.Limits.PeerRelayed = 2, 2 })
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	through := func(h *wire.Host) int {
		n := 0
		for _, s := range h.Status() {
			if s.Relayed && s.Outbound {
				n++
			}
		}
		return n
	}
	wiretest.Wait(t, "two relayed connections", func() bool { return through(a)+through(b) == 2 })
	for range 20 { // they are looked for at every probe
		if n := through(a) + through(b); n > 2 {
			t.Fatalf("%d relayed connections, allowed are 2", n)
		}
		if !sends(t, a, c, wire.Operation, 8) {
			t.Fatal("the relay does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestRelay_HoldsBackBeyondTheShare(t *testing.T) {
	t.Parallel()
	m := relayed(t, 3, nil, func(_ int, o *wire.Options) {
		o.Limits = wire.DefaultLimits()
		o.Limits.RelayBytes = 2 // a handshake takes an hour
	})
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	asked := 0
	for try, begun := 0, false; asked < 10; try++ {
		if try == 100 {
			t.Fatal("the relay was not asked")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); err == nil {
			if p, _ := a.Path(b.KeyID()); p.Via != "" {
				t.Fatalf("a connection went over %s", p.Via)
			}
		}
		<-ctx.Done()
		cancel()
		if begun = begun || c.Relayed() > 0; begun {
			asked++
		}
	}
}

func TestRelay_CannotStandForThePeer(t *testing.T) {
	t.Parallel()
	// The far end proves its key: over a host that leads elsewhere nobody is
	// taken for the peer.
	liar := wiretest.Key(t, 2).KeyID()
	m := relayed(t, 4, nil, func(i int, o *wire.Options) {
		o.Relays = nil
		if i == 0 {
			o.Relays = func(context.Context, string) []string { return []string{liar} }
		}
	})
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	if err := c.AddPeer(b.KeyID(), m.Hosts[3].Addresses()); err != nil { // it lies about where b is
		t.Fatal(err)
	}
	m.Cut(0, 1, true)
	m.Cut(1, 0, true)
	wiretest.Wait(t, "the end of the silent connections", func() bool { return !a.Connected(b.KeyID(), wire.Operation) })
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, [][]byte{[]byte("secret")}, nil)
	if err == nil {
		t.Fatal("somebody answered for the peer")
	}
	if !strings.Contains(err.Error(), b.KeyID()) {
		t.Errorf("the error does not name the peer: %v", err)
	}
}

func TestSampler_HeartbeatsAndOneWayFrames(t *testing.T) {
	t.Parallel()
	const lag = 40 * time.Millisecond
	var mu sync.Mutex
	least, with := map[int]time.Duration{}, map[int]int{}
	m := wiretest.New(t, 2, func(i int, o *wire.Options) {
		o.OnSample = func(_ string, rtt time.Duration, at *wire.Coordinate) {
			mu.Lock()
			defer mu.Unlock()
			if old, ok := least[i]; !ok || rtt < old {
				least[i] = rtt
			}
			if at != nil && at.Vector[0] == float32(1-i) {
				with[i]++
			}
		}
	})
	m.Delay(0, 1, lag/2)
	m.Delay(1, 0, lag/2)
	for i, h := range m.Hosts {
		h.SetCoordinate(wire.Coordinate{Vector: [8]float32{float32(i)}, Dimensions: 2})
		h.Message(3, func(msg wire.Message) { msg.Payload.Release() })
	}
	a, b := m.Hosts[0], m.Hosts[1]
	if err := a.Keep(b.KeyID(), true); err != nil { // nobody calls: what is heard are heartbeats
		t.Fatal(err)
	}
	enough := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return with[0] >= n && with[1] >= n
		}
	}
	wiretest.Wait(t, "samples of heartbeats at both ends", enough(3))
	mu.Lock()
	for i, rtt := range least {
		if rtt < lag {
			t.Errorf("host %d measured %v, the link has %v", i, rtt, lag)
		}
	}
	clear(least)
	clear(with)
	mu.Unlock()
	wiretest.Wait(t, "samples of one-way frames at both ends", func() bool { // so often that no heartbeat goes
		for i, h := range m.Hosts {
			if err := h.Send(m.Hosts[1-i].KeyID(), wire.Beacon, 3, []byte("beacon")); err != nil {
				t.Fatal(err)
			}
		}
		return enough(3)()
	})
	if p, ok := a.Path(b.KeyID()); !ok || p.RTT < lag || p.Via != "" {
		t.Errorf("the path is %+v, %v; want a direct one of at least %v", p, ok, lag)
	}
}
