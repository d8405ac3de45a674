package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// slowLink forwards connections to a target, all of them together at a rate in
// bytes a second, as a narrow link shared by a pair of peers would.
type slowLink struct {
	listener net.Listener
	network  string
	target   string
	rate     int
	wg       sync.WaitGroup

	mu    sync.Mutex // guards below
	free  time.Time  // when the link has sent what it took
	conns []net.Conn
}

func newSlowLink(t testing.TB, address string, rate int) *slowLink {
	t.Helper()
	a, err := ma.NewMultiaddr(address)
	if err != nil {
		t.Fatal(err)
	}
	network, target, err := manet.DialArgs(a)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowLink{listener: l, network: network, target: target, rate: rate}
	s.wg.Add(1)
	go s.accept()
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

func (s *slowLink) address(t testing.TB) string {
	t.Helper()
	a, err := manet.FromNetAddr(s.listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func (s *slowLink) accept() {
	defer s.wg.Done()
	for {
		in, err := s.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial(s.network, s.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, in, out)
		s.mu.Unlock()
		s.wg.Add(2)
		go s.forward(in, out)
		go s.forward(out, in)
	}
}

// forward passes packets on when the link is free for them.
func (s *slowLink) forward(from, to net.Conn) {
	defer s.wg.Done()
	defer func() { _, _ = from.Close(), to.Close() }()
	packet := make([]byte, 1500)
	for {
		n, err := from.Read(packet)
		if err != nil {
			return
		}
		s.mu.Lock()
		now := time.Now()
		if s.free.Before(now) {
			s.free = now
		}
		s.free = s.free.Add(time.Duration(n) * time.Second / time.Duration(s.rate))
		wait := s.free.Sub(now)
		s.mu.Unlock()
		time.Sleep(wait)
		if _, err := to.Write(packet[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// roundTrips measures calls in class, with a body of so many bytes, while
// chunks fill a link of 20 Mbit/s.
func roundTrips(t testing.TB, class wire.Class, n, size int) []time.Duration {
	t.Helper()
	a := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 1)})
	b := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 2), Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	serveEcho(b)
	b.Inline(failing, func(r *wire.Request) { r.Reply(nil) })
	link := newSlowLink(t, b.Addresses()[0], 20e6/8)
	if err := a.AddPeer(b.KeyID(), []string{link.address(t)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := a.Call(ctx, b.KeyID(), class, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	stream, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 16 { // 4 MiB under way
		wg.Add(1)
		go func() {
			defer wg.Done()
			for stream.Err() == nil {
				_, _ = a.Call(stream, b.KeyID(), wire.Chunk, failing, nil, [][]byte{pattern(256<<10, 1)}, nil)
			}
		}()
	}
	wiretest.Wait(t, "the link to fill", func() bool { return a.Queued(b.KeyID(), wire.Chunk) > 1<<19 })
	var rtts []time.Duration
	for range n {
		start := time.Now()
		if _, err := a.Call(ctx, b.KeyID(), class, failing, nil, [][]byte{pattern(size, 1)}, nil); err != nil {
			t.Fatal(err)
		}
		rtts = append(rtts, time.Since(start))
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	wg.Wait()
	slices.Sort(rtts)
	return rtts
}

func TestCall_BeaconsDoNotQueueBehindChunks(t *testing.T) {
	alone := roundTrips(t, wire.Beacon, 100, 100)
	p99 := alone[98]
	t.Logf("beacon beside chunks at 20 Mbit/s: median %v, p99 %v", alone[50], p99)
	if p99 > 250*time.Millisecond { // a third of the lease is a second
		t.Errorf("p99 is %v", p99)
	}
	shared := roundTrips(t, wire.Chunk, 1, 64<<10)
	t.Logf("a chunk: %v", shared[0])
	if shared[0] < 2*p99 {
		t.Errorf("a chunk behind chunks took only %v: the link was not full", shared[0])
	}
	small := roundTrips(t, wire.Chunk, 5, 100)
	t.Logf("a small call on the chunks' own connection: median %v", small[2])
	if small[2] > shared[0] {
		t.Errorf("a small call took %v, as if it had waited for all chunks before it", small[2])
	}
}
