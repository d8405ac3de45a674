package contact

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/wire"
)

// far is a network in which dialling the port i+1 takes far[i], and has no end
// where that is negative.
type far struct {
	times []time.Duration
	dials *atomic.Int32
}

func (f far) Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error) {
	f.dials.Add(1)
	text, err := address.ValueForProtocol(ma.P_TCP)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	d := f.times[port-1]
	if d < 0 {
		d = time.Hour
	}
	if !pause(ctx, d) {
		return nil, ctx.Err()
	}
	a, b := net.Pipe()
	_ = b.Close()
	return manet.WrapNetConn(&placed{a})
}

func (far) Listen(ma.Multiaddr) (manet.Listener, error) { return nil, net.ErrClosed }

// placed is one end of a pipe with addresses that a host understands.
type placed struct{ net.Conn }

func (*placed) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9} }
func (*placed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9} }

func TestSettle_PutsTheNearerByMeasurementFirst(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		far      []time.Duration
		measured []time.Duration // lately; 0: not
		first    int
		took     time.Duration
		dials    int32
	}{
		{"as predicted", []time.Duration{20 * ms, 50 * ms, ms}, nil, 0, 20 * ms, 2},
		{"the second is nearer", []time.Duration{80 * ms, 20 * ms, ms}, nil, 1, 22 * ms, 2},
		{"as good as equally near", []time.Duration{21 * ms, 20 * ms, ms}, nil, 0, 21 * ms, 2},
		{"the first is dead", []time.Duration{-1, 20 * ms, ms}, nil, 1, 22 * ms, 2},
		{"the second is dead", []time.Duration{20 * ms, -1, ms}, nil, 0, 20 * ms, 2},
		{"both are dead", []time.Duration{-1, -1, ms}, nil, 0, settleLimit, 2},
		{"the first was measured lately", []time.Duration{-1, 20 * ms, ms}, []time.Duration{50 * ms, 0}, 1, 22 * ms, 1},
		{"and is nearer than the second", []time.Duration{-1, -1, ms}, []time.Duration{50 * ms, 0}, 0, 50 * ms, 1},
		{"both were", []time.Duration{-1, -1, ms}, []time.Duration{50 * ms, 20 * ms}, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, nodes, dials := farAway(t, test.far)
				for i, rtt := range test.measured {
					if rtt > 0 {
						c.near.Sample(nodes[i], rtt, nil)
					}
				}
				got, began := slices.Clone(nodes), time.Now()
				c.Settle(t.Context(), got)
				took := time.Since(began)
				if got[0] != nodes[test.first] || got[1] != nodes[1-test.first] || got[2] != nodes[2] {
					t.Errorf("got %v of %v, want number %d first", got, nodes, test.first)
				}
				if took != test.took || dials.Load() != test.dials {
					t.Errorf("it took %v and %d dials, want %v and %d", took, dials.Load(), test.took, test.dials)
				}
			})
		})
	}
}

// farAway is a Cluster in a network of nodes that far away, and the nodes.
func farAway(t *testing.T, times []time.Duration) (*Cluster, []ids.Node, *atomic.Int32) {
	t.Helper()
	began := time.Now()
	c := &Cluster{opt: Options{Clock: func() time.Duration { return time.Since(began) + time.Hour }}, nodes: map[ids.Node]*node{}}
	key, err := wire.NewKey(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	dials := new(atomic.Int32)
	if c.host, err = wire.New(wire.Options{Key: key, Network: far{times, dials}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.host.Close() })
	if c.near, err = proximity.New(c.opt.Clock, rand.NewPCG(1, 2)); err != nil {
		t.Fatal(err)
	}
	var nodes []ids.Node
	for i := range times {
		peer, err := wire.NewKey(rand.NewChaCha8([32]byte{byte(i + 2)}))
		if err != nil {
			t.Fatal(err)
		}
		id := ids.Node(peer.KeyID())
		nodes = append(nodes, id)
		c.nodes[id] = &node{row: geoconfig.Node{ID: id}}
		if err := c.host.AddPeer(string(id), []string{"/ip4/10.0.0.2/tcp/" + strconv.Itoa(i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	return c, nodes, dials
}
