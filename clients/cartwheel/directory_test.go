//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// actsForRoot waits until a node acts for the root.
func actsForRoot(t *testing.T, c *servertest.Cluster, n *servertest.Node, try func(*servertest.Node)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	servertest.Await(ctx, t, "the node to act for the root", func() error {
		now := c.Active(ids.RootSlice)
		if now == n {
			return nil
		}
		try(now)
		return fmt.Errorf("node %d does", now.Index)
	})
}

// TestNodes_MountFindsOneThatJoinedLater hands the root over to a node that was
// not there when the mount began.
func TestNodes_MountFindsOneThatJoinedLater(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: 20 * time.Second})
	put(t, cl, mount.Root, "before", "x", 0)
	late := c.Join("c")
	admin := c.Connect("root")
	ctx := context.Background()
	actsForRoot(t, c, late, func(now *servertest.Node) {
		// It is refused until the node has a copy.
		_, _ = admin.Call(ctx, now.ID(), wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: 1, To: string(late.ID())}, nil, &pb.HandOverResponse{})
	})
	put(t, cl, mount.Root, "after", "y", 0)
	if got := get(t, cl, mount.Root, "after"); got != "y" {
		t.Errorf("got %q", got)
	}
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
}

// TestNodes_MountFollowsOneToAnotherAddress starts the active anew elsewhere.
func TestNodes_MountFollowsOneToAnotherAddress(t *testing.T) {
	const lease = time.Second
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, conf *server.Config) { conf.Lease, conf.Session = lease, lease }})
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: 20 * time.Second})
	put(t, cl, mount.Root, "before", "x", 0)
	n := c.Active(ids.RootSlice)
	n.Stop()
	n.Move()
	n.Start()
	actsForRoot(t, c, n, func(*servertest.Node) {}) // it is its home
	put(t, cl, mount.Root, "after", "y", 0)
	if got := get(t, cl, mount.Root, "after"); got != "y" {
		t.Errorf("got %q", got)
	}
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
}
