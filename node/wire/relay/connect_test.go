package relay

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
)

func TestChoose_ShortestRoundTripFirst(t *testing.T) {
	var asked atomic.Int32
	rtts := map[string]time.Duration{"b": 3, "c": 1, "d": 2, "f": 0}
	got := Choose(t.Context(), []string{"self", "b", "peer", "b", "c", "dead", "d", "f"}, [2]string{"peer", "self"},
		func(_ context.Context, host string) (time.Duration, error) {
			asked.Add(1)
			rtt, ok := rtts[host]
			if !ok {
				return 0, errors.New("it does not answer")
			}
			return rtt, nil
		})
	if want := []string{"c", "d", "b"}; !slices.Equal(got, want) || asked.Load() != maxAsked {
		t.Errorf("got %v after %d questions, want %v after %d", got, asked.Load(), want, maxAsked)
	}
}

// conn counts how often it was closed.
type conn struct {
	libp2p.CapableConn
	closed atomic.Int32
}

func (c *conn) Close() error { c.closed.Add(1); return nil }

func TestConnect_FirstPathWins(t *testing.T) {
	errBroken := errors.New("broken")
	works := func(c *conn) Attempt { return func(context.Context) (libp2p.CapableConn, error) { return c, nil } }
	fails := func(context.Context) (libp2p.CapableConn, error) { return nil, errBroken }
	waits := func(ctx context.Context) (libp2p.CapableConn, error) { <-ctx.Done(); return nil, ctx.Err() }
	late := func(c *conn) Attempt {
		return func(ctx context.Context) (libp2p.CapableConn, error) { <-ctx.Done(); return c, nil }
	}
	direct, relayed := &conn{}, &conn{}
	for _, tt := range []struct {
		name   string
		paths  Paths
		want   *conn
		closed *conn
	}{
		{"the direct one at once", Paths{Direct: works(direct), Relayed: works(relayed), Head: time.Hour}, direct, nil},
		{"the relayed one after a failure", Paths{Direct: fails, Relayed: works(relayed), Head: time.Hour, Pause: time.Hour}, relayed, nil},
		{"the relayed one after the head start", Paths{Direct: waits, Relayed: works(relayed), Pause: time.Hour}, relayed, nil},
		{"none", Paths{Direct: fails, Relayed: fails, Head: time.Hour, Pause: time.Hour}, nil, nil},
		{"a second one is closed", Paths{Direct: late(direct), Relayed: works(relayed), Pause: time.Hour}, relayed, direct},
	} {
		t.Run(tt.name, func(t *testing.T) {
			direct.closed.Store(0)
			relayed.closed.Store(0)
			got, err := Connect(t.Context(), tt.paths)
			if tt.want == nil {
				if !errors.Is(err, errBroken) {
					t.Errorf("got %v, want %v", err, errBroken)
				}
				return
			}
			if err != nil || got != libp2p.CapableConn(tt.want) || tt.want.closed.Load() != 0 {
				t.Errorf("got another one, %v", err)
			}
			if tt.closed != nil && tt.closed.closed.Load() != 1 {
				t.Error("the second connection stays open")
			}
		})
	}
}
