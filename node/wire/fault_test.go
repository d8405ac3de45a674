package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/pb"
	"cartwheel.dev/node/wire/wiretest"
)

func TestSilenceFailsCallsAndHealingReconnectsAtOnce(t *testing.T) {
	m := wiretest.New(t, 2)
	a, b := m.Hosts[0], m.Hosts[1]
	serveEcho(b)
	ctx := within(t, 20*time.Second)
	for cycle := range 3 {
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

func TestCrossingDialsSettleOnOneConnection(t *testing.T) {
	for round := range 5 {
		m := wiretest.New(t, 2, func(i int, o *wire.Options) { o.Key = wiretest.Key(t, uint64(100+round*2+i)) })
		serveEcho(m.Hosts[0])
		serveEcho(m.Hosts[1])
		ctx := within(t, 20*time.Second)
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

func TestGaterRefusesAndCutsPeers(t *testing.T) {
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

func TestKeepReconnectsToARestartedPeer(t *testing.T) {
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

func TestOneOfSeveralAddressesIsEnough(t *testing.T) {
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

func TestAWrongKeyAtTheAddressIsRefused(t *testing.T) {
	a, b := wiretest.Pair(t)
	other := wiretest.Key(t, 77)
	if err := a.AddPeer(other.KeyID(), b.Addresses()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(within(t, 5*time.Second), other.KeyID(), wire.Operation, echo, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v, want unreachable", err)
	}
}

func TestStrangersDoNotHurt(t *testing.T) {
	a, b := wiretest.Pair(t)
	serveEcho(b)
	address, err := ma.NewMultiaddr(b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	network, target, err := manet.DialArgs(address)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		c, err := net.DialTimeout(network, target, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
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

func TestLimitsAreKept(t *testing.T) {
	a, b := wiretest.Pair(t, func(i int, o *wire.Options) {
		l := &o.Limits.Class[wire.Operation]
		l.Header, l.Body = 1000, 100_000
		if i == 1 {
			l.Calls, l.Held, l.Header, l.Body = 4, 150_000, 2000, 200_000
			o.Limits.Workers, o.Limits.Backlog = 1, 1
		}
	})
	ctx := within(t, 10*time.Second)
	id := b.KeyID()
	serveEcho(b)
	requests := make(chan *wire.Request, 10)
	b.Inline(hanging, func(r *wire.Request) { requests <- r })
	next := func() *wire.Request {
		select {
		case r := <-requests:
			return r
		case <-ctx.Done():
			t.Fatal("no request arrives")
			return nil
		}
	}
	overloaded := func(err error) bool { return fault.Is(err, fault.Overloaded) && wire.Answered(err) }

	t.Run("a message too large to send", func(t *testing.T) {
		big := &pb.ReadHeader{Principal: &pb.Principal{Groups: make([]uint32, 5000)}}
		for i := range big.Principal.Groups {
			big.Principal.Groups[i] = 1 << 30
		}
		if _, err := a.Call(ctx, id, wire.Operation, echo, big, nil, nil); !fault.Is(err, fault.TooLarge) || wire.Answered(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a body too large to send", func(t *testing.T) {
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 100_001)}, nil); !fault.Is(err, fault.TooLarge) {
			t.Errorf("call: got %v", err)
		}
		if err := a.Send(id, wire.Operation, note, make([]byte, 100_001)); !fault.Is(err, fault.TooLarge) {
			t.Errorf("send: got %v", err)
		}
	})
	t.Run("a frame larger than the receiver takes ends the connection", func(t *testing.T) {
		b.Inline(failing, func(r *wire.Request) { r.Reply(nil, make([]byte, 150_000)) }) // b may send it, a may not take it
		if _, err := a.Call(ctx, id, wire.Operation, failing, nil, nil, nil); !fault.Is(err, fault.Unreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bodies held", func(t *testing.T) {
		first := make(chan error, 1)
		go func() {
			_, err := a.Call(ctx, id, wire.Operation, hanging, nil, [][]byte{make([]byte, 100_000)}, nil)
			first <- err
		}()
		r := next()
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 60_000)}, nil); !overloaded(err) {
			t.Errorf("second body: got %v", err)
		}
		r.Reply(nil)
		if err := <-first; err != nil {
			t.Errorf("first body: %v", err)
		}
		if _, err := a.Call(ctx, id, wire.Operation, echo, nil, [][]byte{make([]byte, 60_000)}, nil); err != nil {
			t.Errorf("after the first: %v", err)
		}
	})
	t.Run("requests under way", func(t *testing.T) {
		ended := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := a.Call(ctx, id, wire.Operation, hanging, nil, nil, nil)
				ended <- err
			}()
		}
		if err := <-ended; !overloaded(err) {
			t.Errorf("the fifth: got %v", err)
		}
		for range 4 {
			r := next()
			r.Reply(nil)
			r.Reply(nil) // does nothing
		}
		for range 4 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("requests waiting for a worker", func(t *testing.T) {
		release := make(chan struct{})
		b.Spawn(hanging, func(_ context.Context, r *wire.Request) { <-release; r.Reply(nil) })
		ended := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := a.Call(ctx, id, wire.Operation, hanging, nil, nil, nil)
				ended <- err
			}()
		}
		if err := <-ended; !overloaded(err) {
			t.Errorf("the third: got %v", err)
		}
		close(release)
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAFullQueueRefusesMessagesAndMakesCallsWait(t *testing.T) {
	a, b := wiretest.Pair(t, func(_ int, o *wire.Options) { o.Limits.Class[wire.Chunk].Queue = 1 << 20 })
	block := make(chan struct{})
	unblock := sync.OnceFunc(func() { close(block) })
	defer unblock()
	b.Message(note, func(m wire.Message) { m.Payload.Release(); <-block }) // wrong, on purpose: it stops reading
	serveEcho(b)
	id := b.KeyID()
	wiretest.Wait(t, "a connection", func() bool { return a.Send(id, wire.Chunk, note, nil) == nil })
	payload := make([]byte, 512<<10)
	var err error
	for range 100 { // what the sockets take, and then the queue
		if err = a.Send(id, wire.Chunk, note, payload); err != nil {
			break
		}
		if a.Queued(id, wire.Chunk) > 2<<20 {
			t.Fatalf("%d bytes are queued", a.Queued(id, wire.Chunk))
		}
		time.Sleep(2 * time.Millisecond)
	}
	if !fault.Is(err, fault.Overloaded) {
		t.Fatalf("got %v, want overloaded", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, id, wire.Chunk, echo, nil, nil, nil); !fault.Is(err, fault.TimedOut) {
		t.Errorf("a call behind a full queue: got %v", err)
	}
	if _, err := a.Call(within(t, 5*time.Second), id, wire.Beacon, echo, nil, nil, nil); err != nil {
		t.Errorf("another class: %v", err)
	}
	unblock()
	if _, err := a.Call(within(t, 10*time.Second), id, wire.Chunk, echo, nil, nil, nil); err != nil {
		t.Errorf("once it drains: %v", err)
	}
}

func TestDelaysKeepOrder(t *testing.T) {
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

func TestCloseEndsEverythingUnderLoad(t *testing.T) {
	m := wiretest.New(t, 3)
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

func TestBodiesAreGivenBackOnce(t *testing.T) {
	a, b := wiretest.Pair(t)
	var given atomic.Int32
	b.Inline(echo, func(r *wire.Request) {
		r.ReplyOwned(func() { given.Add(1) }, nil, pattern(300_000, 1))
	})
	ctx := within(t, 10*time.Second)
	const n = 50
	for i := range n {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		if i%5 == 4 {
			go b.Disconnect(a.KeyID())
		}
		_, _ = a.Call(call, b.KeyID(), wire.Chunk, echo, nil, nil, nil) // lost ones count too
		cancel()
	}
	// Calls that never arrived gave nothing; all that did give back once.
	last := int32(-1)
	wiretest.Wait(t, "bodies to be given back", func() bool {
		g := given.Load()
		settled := g == last && g >= n/2
		last = g
		return settled
	})
	if g := given.Load(); g > n {
		t.Errorf("given back %d times for %d calls", g, n)
	}
}

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k, err := wire.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
	again, err := wire.LoadKey(path)
	if err != nil || again.KeyID() != k.KeyID() {
		t.Errorf("loading again: %v, %s and %s", err, again.KeyID(), k.KeyID())
	}
	if id, err := wire.PublicID(k.Public()); err != nil || id != k.KeyID() {
		t.Errorf("id of the public key: %s, %v", id, err)
	}
	signature, err := k.Sign([]byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Verify(k.Public(), []byte("data"), signature); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"other data": wire.Verify(k.Public(), []byte("date"), signature),
		"other key":  wire.Verify(wiretest.Key(t, 3).Public(), []byte("data"), signature),
		"no key":     wire.Verify([]byte("no"), []byte("data"), signature),
	} {
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.LoadKey(path); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a damaged key: got %v", err)
	}
}

func TestSamplesAndStamps(t *testing.T) {
	type sample struct {
		rtt time.Duration
		at  *wire.Coordinate
	}
	samples := make(chan sample, 10)
	stamps := make(chan uint64, 10)
	m := wiretest.New(t, 2, func(i int, o *wire.Options) {
		o.HLC = func() uint64 { return uint64(1000 + i) }
		if i == 0 {
			o.OnSample = func(_ string, rtt time.Duration, at *wire.Coordinate) {
				if at != nil {
					c := *at
					at = &c
				}
				samples <- sample{rtt, at}
			}
			o.OnHLC = func(_ string, hlc uint64) { stamps <- hlc }
		}
	})
	a, b := m.Hosts[0], m.Hosts[1]
	b.Spawn(spawned, func(_ context.Context, r *wire.Request) {
		if r.HLC != 1000 {
			t.Errorf("the request's stamp is %d", r.HLC)
		}
		time.Sleep(200 * time.Millisecond)
		r.Reply(nil)
	})
	b.SetCoordinate(wire.Coordinate{X: 1, Y: -2, Height: 3, Error: 0.5})
	if _, err := a.Call(within(t, 5*time.Second), b.KeyID(), wire.Beacon, spawned, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	s := <-samples
	if s.rtt <= 0 || s.rtt > 150*time.Millisecond {
		t.Errorf("rtt %v includes the peer's own time", s.rtt)
	}
	if s.at == nil || *s.at != (wire.Coordinate{X: 1, Y: -2, Height: 3, Error: 0.5}) {
		t.Errorf("coordinate %v", s.at)
	}
	if got := <-stamps; got != 1001 {
		t.Errorf("stamp %d", got)
	}
}
