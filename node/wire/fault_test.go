package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestHost_ReconnectsAtOnceAfterSilence(t *testing.T) {
	m := wiretest.New(t, 2)
	a, b := m.Hosts[0], m.Hosts[1]
	serveEcho(b)
	ctx := within(t, 20*time.Second)
	for cycle := range 2 {
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		m.Cut(0, 1, true)
		if cycle == 1 {
			m.Cut(1, 0, true)
		}
		start := time.Now()
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil)
		if !fault.Is(err, fault.Unreachable) || wire.Answered(err) {
			t.Fatalf("cut off: got %v, want unreachable", err)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("the call hung for %v", d)
		}
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
			t.Fatalf("still cut off: got %v", err)
		}
		m.Cut(0, 1, false)
		m.Cut(1, 0, false)
		start = time.Now()
		wiretest.Wait(t, "the connection to come back", func() bool {
			_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil)
			return err == nil
		})
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("healing took %v", d)
		}
	}
}

func TestDial_CrossingDialsSettle(t *testing.T) {
	for round := range 5 {
		m := wiretest.New(t, 2, func(i int, o *wire.Options) {
			o.Key = wiretest.Key(t, uint64(100+round*2+i))
			o.Times.Dial, o.Times.Silence = 20*time.Second, 20*time.Second // a crowded machine makes nothing here fail
		})
		serveEcho(m.Hosts[0])
		serveEcho(m.Hosts[1])
		ctx := within(t, time.Minute)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				from, to := m.Hosts[i%2], m.Hosts[1-i%2]
				for range 20 {
					if _, err := from.Call(ctx, to.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				}
			}()
		}
		wg.Wait()
	}
}

func TestGater_RefusesAndCutsPeers(t *testing.T) {
	var banned atomic.Value
	banned.Store("")
	a, b := wiretest.Pair(t, func(i int, o *wire.Options) {
		if i == 1 {
			o.Gater = func(peer string) error {
				if banned.Load() == peer {
					return fault.E(fault.Unauthorized, "roster", peer, "")
				}
				return nil
			}
		}
	})
	serveEcho(a)
	serveEcho(b)
	b.Inline(hanging, func(*wire.Request) {})
	ctx := within(t, 15*time.Second)
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	cut := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, hanging, nil, nil, nil)
		cut <- err
	}()
	banned.Store(a.KeyID())
	b.Recheck()
	select {
	case err := <-cut:
		if !fault.Is(err, fault.Unreachable) {
			t.Errorf("a call of a revoked peer: got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a revoked peer's connection stays")
	}
	for range 3 {
		if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
			t.Errorf("a refused peer calls: got %v", err)
		}
	}
	if _, err := b.Call(ctx, a.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
		t.Errorf("calling a refused peer: got %v", err)
	}
	if b.Connected(a.KeyID(), wire.Operation) {
		t.Error("a refused peer is connected")
	}
	banned.Store("")
	wiretest.Wait(t, "the peer to be let in again", func() bool {
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil)
		return err == nil
	})
}

func TestKeep_ReconnectsToRestartedPeer(t *testing.T) {
	key := wiretest.Key(t, 9)
	a := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1), Times: wiretest.Times()})
	listen := "/ip4/127.0.0.1/tcp/0"
	for range 3 {
		b, err := wire.New(wire.Options{Key: key, Listen: []string{listen}, Times: wiretest.Times()})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Listen(); err != nil {
			t.Fatal(err)
		}
		listen = b.Addresses()[0]
		if err := errors.Join(a.AddPeer(b.KeyID(), b.Addresses()), a.Keep(b.KeyID(), true)); err != nil {
			t.Fatal(err)
		}
		wiretest.Wait(t, "a connection", func() bool {
			return a.Connected(b.KeyID(), wire.Beacon) && a.Connected(b.KeyID(), wire.Operation) && len(b.Peers()) == 1
		})
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		wiretest.Wait(t, "the loss to be noticed", func() bool { return !a.Connected(b.KeyID(), wire.Beacon) })
	}
}

func TestDial_OneAddressIsEnough(t *testing.T) {
	a, b := wiretest.Pair(t)
	serveEcho(b)
	addresses := append([]string{"/ip4/127.0.0.1/tcp/1", "/ip4/203.0.113.1/tcp/9"}, b.Addresses()...)
	if err := a.AddPeer(b.KeyID(), addresses); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(within(t, 5*time.Second), b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestDial_RefusesWrongKey(t *testing.T) {
	a, b := wiretest.Pair(t)
	other := wiretest.Key(t, 77)
	if err := a.AddPeer(other.KeyID(), b.Addresses()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(within(t, 5*time.Second), other.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v, want unreachable", err)
	}
}

func TestLimits_ConnectionsOfOneAddress(t *testing.T) {
	const limit = 5
	limits := wire.DefaultLimits()
	limits.PerAddress, limits.AddressRate = limit, 1
	b := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Limits: limits})
	refused := 0
	for range 3 * limit {
		c := dialRaw(t, b)
		if err := c.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1)) // the other end's greeting
		if err != nil {
			refused++
		}
	}
	if refused != 2*limit {
		t.Errorf("%d of %d connections were refused, want %d", refused, 3*limit, 2*limit)
	}
}

// dialRaw connects without any handshake.
func dialRaw(t *testing.T, h *wire.Host) net.Conn {
	t.Helper()
	address, err := ma.NewMultiaddr(h.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	network, target, err := manet.DialArgs(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.DialTimeout(network, target, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStrangers_GarbageDoesNoHarm(t *testing.T) {
	a, b := wiretest.Pair(t)
	serveEcho(b)
	for i := range 100 {
		c := dialRaw(t, b)
		if i%2 == 0 {
			_, _ = io.WriteString(c, strings.Repeat("\x13/multistream/9.9.9\n", i)) // refused or not, both are fine
		}
	}
	start := time.Now()
	if _, err := a.Call(within(t, 5*time.Second), b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatalf("while strangers hang on: %v", err)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("the call took %v", d)
	}
}

func TestFilter_DelaysKeepOrder(t *testing.T) {
	m := wiretest.New(t, 2)
	a, b := m.Hosts[0], m.Hosts[1]
	serveEcho(b)
	got := make(chan byte, 100)
	b.Message(note, func(m wire.Message) { got <- m.Payload.Bytes()[0]; m.Payload.Release() })
	ctx := within(t, 10*time.Second)
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	m.Delay(0, 1, 50*time.Millisecond)
	start := time.Now()
	for i := range 10 {
		if err := a.Send(b.KeyID(), wire.Operation, note, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, [][]byte{pattern(100_000, 3)}, nil); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
	for i := range 10 {
		if g := <-got; g != byte(i) {
			t.Fatalf("got frame %d, want %d", g, i)
		}
	}
}

func TestClose_EndsEverythingUnderLoad(t *testing.T) {
	t.Run("TCP", func(t *testing.T) { testCloseUnderLoad(t) })
	t.Run("Unix sockets", func(t *testing.T) { testCloseUnderLoad(t, wiretest.Local(t)) })
}

func testCloseUnderLoad(t *testing.T, options ...wiretest.Option) {
	t.Helper()
	m := wiretest.New(t, 3, options...)
	var under atomic.Int32
	for _, h := range m.Hosts {
		serveEcho(h)
		h.Spawn(hanging, func(ctx context.Context, r *wire.Request) { under.Add(1); <-ctx.Done(); under.Add(-1) })
	}
	ctx := within(t, 20*time.Second)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			from, to := m.Hosts[i%3], m.Hosts[(i+1)%3]
			for {
				method := []wire.Method{echo, spawned, hanging}[i/3%3]
				got, err := from.Call(ctx, to.KeyID(), wire.Class(i%3), method, nil, [][]byte{pattern(i*5000, 0)}, nil)
				if fault.Is(err, fault.Closed) && !wire.Answered(err) {
					return
				}
				if ctx.Err() != nil {
					t.Errorf("caller %d did not end: %v", i, err)
					return
				}
				got.Release()
				if err != nil {
					time.Sleep(time.Millisecond)
				}
			}
		}()
	}
	wiretest.Wait(t, "handlers to run", func() bool { return under.Load() > 3 })
	for _, h := range m.Hosts {
		start := time.Now()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("closing took %v", d)
		}
	}
	wg.Wait()
	if n := under.Load(); n != 0 {
		t.Errorf("%d handlers still run after Close", n)
	}
	if _, err := m.Hosts[0].Call(ctx, m.Hosts[1].KeyID(), wire.Beacon, echo, nil, nil, nil); !fault.Is(err, fault.Closed) {
		t.Errorf("a call on a closed host: got %v", err)
	}
}
