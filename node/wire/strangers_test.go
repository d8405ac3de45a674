package wire

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// accepted is the near end of a new connection, and far the other one.
func accepted(t *testing.T) (near *raw, far manet.Conn) {
	t.Helper()
	l, err := manet.Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if far, err = manet.Dial(l.Multiaddr()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); c.Close() })
	return newRaw(c), far
}

// TestTurns_StrangersComputeInTurn: never more at once than there are turns,
// who waits for its peer holds none, and peers that are known need none.
func TestTurns_StrangersComputeInTurn(t *testing.T) {
	limits := DefaultLimits().withDefaults()
	pool := newStrangers(limits)
	pool.turns = make(turns, 2)
	enter := func(from string, listed bool) (*raw, manet.Conn) {
		near, far := accepted(t)
		near.stranger = pool.enter(from, listed, near)
		return near, far
	}
	var all sync.WaitGroup
	var inside, begun atomic.Int64
	compute := func() {
		if n := inside.Add(1); n > 2 {
			t.Errorf("%d handshakes compute at once", n)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	var peers []manet.Conn
	for range 8 { // more than there are turns, and all wait for their peers
		one, far := enter("10.0.0.1", false)
		peers = append(peers, far)
		all.Go(func() {
			if err := one.inTurn(func() error {
				compute()
				begun.Add(1)
				_, err := one.Read(make([]byte, 1))
				compute()
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all to begin", func() bool { return begun.Load() == 8 })
	for _, far := range peers {
		if _, err := far.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	all.Wait()

	for range cap(pool.turns) { // others compute without an end
		pool.turns <- struct{}{}
	}
	known, _ := enter("10.0.0.2", true)
	if err := known.inTurn(func() error { return nil }); err != nil {
		t.Errorf("a peer that is known: %v", err)
	}
	late, _ := enter("10.0.0.3", false)
	all.Go(func() {
		if err := late.inTurn(func() error { t.Error("it began"); return nil }); !errors.Is(err, errCrowded) {
			t.Errorf("one that gave way while it waited: %v", err)
		}
	})
	late.stranger.leave()
	for range cap(pool.turns) {
		<-pool.turns
	}
	all.Wait()
	if n := len(pool.turns); n != 0 {
		t.Errorf("%d turns are still taken", n)
	}
}
