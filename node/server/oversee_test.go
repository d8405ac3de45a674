package server_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/servertest"
)

// TestOverseer_AsksOtherNodes has one node ask itself and another one for what the
// admin API shows.
func TestOverseer_AsksOtherNodes(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.AwaitRoot(ctx)
	near, far := c.Nodes[0], c.Nodes[1]
	client := c.Connect("root")
	for _, n := range []ids.Node{near.ID(), far.ID()} {
		if _, err := client.Session(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	o := near.Server().Overseer()
	for _, n := range []ids.Node{near.ID(), far.ID()} {
		clients, err := o.Clients(ctx, n)
		if err != nil || len(clients) != 1 || clients[0].User != "root" {
			t.Errorf("clients of %s: got %+v, %v", n.Short(), clients, err)
		}
		if s, err := o.Status(ctx, n); err != nil || s.ID != n || s.Clients != nil {
			t.Errorf("status of %s: got %+v, %v", n.Short(), s, err)
		}
	}
	servertest.Await(ctx, t, "a measurement", func() error {
		net, err := o.Probe(ctx, far.ID(), []ids.Node{near.ID()}, 3)
		if err != nil {
			return err
		}
		return measured(net, far.ID(), near.ID())
	})
}

// measured answers nil where a node measured one other node three times.
func measured(net status.Net, from, to ids.Node) error {
	if net.ID != from || len(net.Links) != 1 || net.Links[0].To != to || len(net.Links[0].ProbeNS) != 3 {
		return fault.Errorf(fault.Again, "server_test.measured", string(from), "got %+v", net)
	}
	return nil
}
