package contact

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/wire"
)

// around is a Cluster that knows nodes "a1 b1 ..." at the sites of their first
// letters and speaks with nobody, with a clock of the test's own.
func around(t *testing.T, site, nodes string) (*Cluster, *time.Duration) {
	t.Helper()
	now := time.Hour
	c := &Cluster{opt: Options{Site: ids.Site(site), Clock: func() time.Duration { return now }}, nodes: map[ids.Node]*node{}}
	key, err := wire.NewKey(nil)
	if err == nil {
		c.host, err = wire.New(wire.Options{Key: key})
	}
	if err == nil {
		c.near, err = proximity.New(c.opt.Clock, rand.NewPCG(1, 2))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.host.Close() })
	for _, n := range strings.Fields(nodes) {
		id := ids.Node(n)
		c.nodes[id] = &node{row: geoconfig.Node{ID: id, Site: ids.Site(n[:1])}}
		c.order = append(c.order, id)
	}
	return c, &now
}

func (c *Cluster) names() string {
	var out []string
	for _, id := range c.Nearest() {
		out = append(out, string(id))
	}
	return strings.Join(out, " ")
}

func TestNearest_IsMeasuredPredictedOrDeclared(t *testing.T) {
	const ms = time.Millisecond
	at := func(x float64) geoconfig.Coordinate {
		return geoconfig.Coordinate{Vector: []float64{x, 0}, Height: 1, Error: 0.1}
	}
	for _, test := range []struct {
		name, site, nodes, want string
		measured                map[string]time.Duration
		published               map[string]float64
	}{
		{name: "nothing is known: the declared site", site: "b", nodes: "a1 b1 c1", want: "b1 a1 c1"},
		{name: "nothing is known and no site declared", nodes: "a1 b1 c1", want: "a1 b1 c1"},
		{name: "measured ones before others", nodes: "a1 b1 c1", measured: map[string]time.Duration{"c1": 90 * ms, "b1": 40 * ms}, want: "b1 c1 a1"},
		{name: "the site's own, though another is as near", site: "b", nodes: "a1 b1", measured: map[string]time.Duration{"a1": 200 * time.Microsecond, "b1": 900 * time.Microsecond}, want: "b1 a1"},
		{name: "a declared site that is not where it says", site: "b", nodes: "a1 b1", measured: map[string]time.Duration{"a1": 5 * ms, "b1": 80 * ms}, want: "a1 b1"},
		{name: "predicted where not measured", site: "z", nodes: "a1 b1 c1 d1", measured: map[string]time.Duration{"a1": 60 * ms},
			published: map[string]float64{"a1": 55, "b1": 20, "c1": 90}, want: "b1 a1 c1 d1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := around(t, test.site, test.nodes)
			for n, x := range test.published {
				c.near.Place(ids.Node(n), at(x))
			}
			if test.published != nil { // the client has found its own place
				c.near.Restore(geoconfig.Coordinate{Vector: []float64{0, 0}, Height: 1, Error: 0.1})
			}
			for n, rtt := range test.measured {
				c.sample(n, rtt, nil)
			}
			if got := c.names(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNearest_ChangesOnlyForAClearlyNearerNode(t *testing.T) {
	c, now := around(t, "", "a1 b1")
	measure := func(n string, rtt time.Duration) {
		for range 60 { // until the smoothed one is there
			*now += time.Second
			c.sample(n, rtt, nil)
		}
	}
	measure("a1", 20*time.Millisecond)
	measure("b1", 30*time.Millisecond)
	for _, step := range []struct {
		b    time.Duration
		want string
	}{{30 * time.Millisecond, "a1 b1"}, {18 * time.Millisecond, "a1 b1"}, {10 * time.Millisecond, "b1 a1"}, {22 * time.Millisecond, "b1 a1"}, {40 * time.Millisecond, "a1 b1"}} {
		measure("b1", step.b)
		measure("a1", 20*time.Millisecond)
		if got := c.names(); got != step.want {
			t.Errorf("with b1 at %v: got %s, want %s", step.b, got, step.want)
		}
	}
}

func TestAvoid_PutsASilentNodeLastForAWhile(t *testing.T) {
	c, now := around(t, "a", "a1 b1 c1")
	c.Avoid("a1")
	if got := c.names(); got != "b1 c1 a1" {
		t.Errorf("got %s, want the silent one last", got)
	}
	c.answered("a1", nil)
	if got := c.names(); got != "a1 b1 c1" {
		t.Errorf("got %s, want it first once it has answered", got)
	}
	for range 20 { // the time does not grow
		c.Avoid("a1")
	}
	*now += awayFor + 1
	if got := c.names(); got != "a1 b1 c1" {
		t.Errorf("got %s, want it tried again after %v", got, awayFor)
	}
}

func TestNearest_ReadsAReplicaIfClearlyNearer(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		active, other time.Duration
		want          ids.Node
	}{{50 * ms, 2 * ms, "b1"}, {50 * ms, 45 * ms, "a1"}, {3 * ms, 50 * ms, "a1"}, {2 * ms, 1500 * time.Microsecond, "a1"}} {
		c, _ := around(t, "", "a1 b1")
		c.sample("a1", test.active, nil)
		c.sample("b1", test.other, nil)
		if got := c.Closest("a1", []ids.Node{"a1", "b1"}); got != test.want {
			t.Errorf("active %v away, other %v: got %s, want %s", test.active, test.other, got, test.want)
		}
	}
	c, _ := around(t, "", "a1 b1")
	c.sample("b1", 1234*time.Microsecond, nil)
	if got := c.Why("b1"); got != "nearest by measured 1.2 ms" {
		t.Errorf("got %q", got)
	}
}

func TestChain_GoesFromEachNodeToTheNearest(t *testing.T) {
	c, _ := around(t, "", "a1 b1 c1 d1")
	for n, x := range map[string]float64{"a1": 0, "b1": 100, "c1": 50, "d1": 90} {
		c.near.Place(ids.Node(n), geoconfig.Coordinate{Vector: []float64{x, 0}, Height: 1, Error: 0.1})
	}
	nodes := []ids.Node{"a1", "b1", "c1", "d1"}
	if c.Chain(nodes); !slices.Equal(nodes, []ids.Node{"a1", "c1", "d1", "b1"}) {
		t.Errorf("got %v", nodes)
	}
}
