package contact

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/contact/contacttest"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/wire"
)

func TestSettle_PutsTheNearerByMeasurementFirst(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		far      []time.Duration // -1: dead
		measured []time.Duration // lately; 0: not
		first    int
		took     time.Duration
		dials    int
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
				c, nodes, network := farAway(t, test.far)
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
				if took != test.took || network.Begun() != test.dials {
					t.Errorf("it took %v and %d dials, want %v and %d", took, network.Begun(), test.took, test.dials)
				}
			})
		})
	}
}

// farAway is a Cluster in a network of nodes that far away, and the nodes.
func farAway(t *testing.T, times []time.Duration) (*Cluster, []ids.Node, *contacttest.Far) {
	t.Helper()
	began := time.Now()
	c := &Cluster{opt: Options{Clock: func() time.Duration { return time.Since(began) + time.Hour }}, nodes: map[ids.Node]*node{}}
	key, err := wire.NewKey(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	network := &contacttest.Far{Times: map[string]time.Duration{}}
	if c.host, err = wire.New(wire.Options{Key: key, Network: network}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.host.Close() })
	if c.near, err = proximity.New(c.opt.Clock, rand.NewPCG(1, 2)); err != nil {
		t.Fatal(err)
	}
	var nodes []ids.Node
	for i, far := range times {
		port := strconv.Itoa(i + 1)
		if far >= 0 {
			network.Times[port] = far
		}
		peer, err := wire.NewKey(rand.NewChaCha8([32]byte{byte(i + 2)}))
		if err != nil {
			t.Fatal(err)
		}
		id := ids.Node(peer.KeyID())
		nodes = append(nodes, id)
		c.nodes[id] = &node{row: geoconfig.Node{ID: id}}
		if err := c.host.AddPeer(string(id), []string{"/ip4/10.0.0.2/tcp/" + port}); err != nil {
			t.Fatal(err)
		}
	}
	return c, nodes, network
}
