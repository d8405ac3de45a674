package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// cutBetween breaks the way between two nodes, in both directions, or heals it.
func cutBetween(a, b *servertest.Node, cut bool) {
	for _, pair := range [][2]*servertest.Node{{a, b}, {b, a}} {
		to := string(pair[1].ID())
		host := pair[0].Server().Host()
		host.SetFilter(nil)
		if cut {
			host.SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict { return wire.Verdict{Drop: peer == to} })
		}
	}
}

// TestRelay_WriteGoesOnOverAThirdNode cuts the active off from one standby,
// while both reach the other one. No node takes over, and what is acknowledged
// is at all three.
func TestRelay_WriteGoesOnOverAThirdNode(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) {
		c.Lease, c.Socket = 20*time.Second, "none" // sockets of one machine are never gone around
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cl := c.Connect("root")
	for _, n := range c.Nodes {
		awaitState(ctx, t, c, n, geoconfig.Normal)
	}
	makeFiles(ctx, t, cl, "before", 1)
	active := c.Active(ids.RootSlice)
	far, third := c.Nodes[(active.Index+1)%3], c.Nodes[(active.Index+2)%3]
	before, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	cutBetween(active, far, true)
	names, _ := makeFiles(ctx, t, cl, "during", 3)
	// The third node alone makes a quorum, so that the writes may end before that.
	servertest.Await(ctx, t, "a way over "+third.ID().Short(), func() error {
		if path, up := active.Server().Host().Path(string(far.ID())); !up || path.Via != string(third.ID()) && path.Via != "?" {
			return fmt.Errorf("the path is %+v (%v)", path, up)
		}
		return nil
	})
	for _, name := range names {
		servertest.Await(ctx, t, name+" at the far node", func() error {
			return far.Server().CheckCopy(ids.RootObject, []byte(name))
		})
	}
	after, err := c.Row(ctx, ids.RootSlice)
	if err != nil || after.Epoch != before.Epoch {
		t.Errorf("epoch %d became %d (%v): somebody took over or was taken out", before.Epoch, after.Epoch, err)
	}
	cutBetween(active, far, false)
	servertest.Await(ctx, t, "the direct way to be taken again", func() error {
		for _, pair := range [][2]*servertest.Node{{active, far}, {far, active}} {
			if p, up := pair[0].Server().Host().Path(string(pair[1].ID())); !up || p.Via != "" {
				return fmt.Errorf("the path is %+v", p)
			}
		}
		return nil
	})
}

// TestRelay_NodesReachGeoConfig cuts a node off from the geo-config
// server, which another node reaches.
func TestRelay_NodesReachGeoConfig(t *testing.T) {
	geo := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 77), Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	other := wiretest.Open(t, wire.Options{Key: wiretest.Key(t, 78), Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	const number wire.Method = 900
	for _, h := range []*wire.Host{geo, other} {
		h.Inline(number, func(r *wire.Request) { r.Reply(nil) })
	}
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) {
		c.GeoConfig, c.Socket = []string{geo.Addresses()[0] + "/p2p/" + geo.KeyID()}, "none"
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, n := range c.Nodes {
		for _, h := range []*wire.Host{geo, other} {
			if err := n.Server().Host().AddPeer(h.KeyID(), h.Addresses()); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Server().Host().Call(ctx, h.KeyID(), wire.Operation, number, nil, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	cut := c.Nodes[0].Server().Host()
	cut.SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: peer == geo.KeyID() || peer == other.KeyID()}
	})
	for _, h := range []*wire.Host{geo, other} {
		cut.Disconnect(h.KeyID())
	}
	servertest.Await(ctx, t, "an answer over another node", func() error {
		_, err := cut.Call(ctx, geo.KeyID(), wire.Operation, number, nil, nil, nil)
		return err
	})
	if p, up := cut.Path(geo.KeyID()); !up || p.Via == "" {
		t.Errorf("the path is %+v, %v", p, up)
	}
	if _, err := cut.Call(ctx, other.KeyID(), wire.Operation, number, nil, nil, nil); err == nil {
		t.Error("a stranger was reached over another node")
	}
}

// TestProximity_NodesPublishCoordinatesAndFindings reads the nodes' rows and the
// audit log, which only nodes that measured have written.
func TestProximity_NodesPublishCoordinatesAndFindings(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "each node's row to name the two others", func() error {
		rows, err := c.Store.Read(ctx, geoconfig.Query{Nodes: true, Audit: 100})
		if err != nil {
			return err
		}
		for _, n := range rows.Nodes {
			if len(n.Together) != 2 || len(n.Apart) != 0 {
				return fmt.Errorf("%+v", n)
			}
		}
		found := 0
		for _, a := range rows.Audit {
			if a.Action == "site.astray" && strings.Contains(a.Detail, "samples") {
				found++
			}
		}
		if found != 6 {
			return fmt.Errorf("%d audit records, want one of each node for each other", found)
		}
		return nil
	})
}
