//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// farActive makes a node at each of three sites on sockets apart, with the
// active of the root a while away from everybody, and counts what each node
// answers to clients, by method.
func farActive(t *testing.T, lag time.Duration) (c *servertest.Cluster, active *servertest.Node, answered []map[wire.Method]*atomic.Int64) {
	t.Helper()
	c = servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.Socket = "none" }})
	active = c.Active(ids.RootSlice)
	nodes := map[string]bool{}
	for _, n := range c.Nodes {
		nodes[string(n.ID())] = true
	}
	for _, n := range c.Nodes {
		counts := map[wire.Method]*atomic.Int64{method.Get: {}, method.Range: {}, method.Put: {}}
		answered = append(answered, counts)
		far := n == active
		n.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
			if count := counts[m]; count != nil && !nodes[peer] {
				count.Add(1)
			}
			if m == wire.MethodDial || !far && peer != string(active.ID()) {
				return wire.Verdict{}
			}
			return wire.Verdict{Delay: lag / 2}
		})
	}
	return c, active, answered
}

func TestNearest_ContentIsReadAndWrittenThere(t *testing.T) {
	t.Parallel()
	c, active, answered := farActive(t, 80*time.Millisecond)
	cl := clientOf(t, c, "") // of no site: what it makes goes to the root's slice
	awaitNear(t, cl, active)
	elsewhere := func(methods ...wire.Method) (n int64) {
		for i, counts := range answered {
			for _, m := range methods {
				if i != active.Index {
					n += counts[m].Load()
				}
			}
		}
		return n
	}
	toActive := func() int64 {
		return answered[active.Index][method.Get].Load() + answered[active.Index][method.Range].Load()
	}
	content := string(bytes.Repeat([]byte("chunk after chunk "), 60_000)) // a megabyte, in chunks
	e := put(t, cl, mount.Root, "f", content, 0)
	if n, far := elsewhere(method.Put), answered[active.Index][method.Put].Load(); n < 2 || far != 0 { // in pieces: that node is at another site, too
		t.Errorf("chunks went in %d pieces to a nearer node and %d times to the active, 80 ms away", n, far)
	}
	// A standby has what was written a moment after it acknowledged it; until
	// then the active is asked.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "reads of a nearer node alone", func() error {
		near, far := elsewhere(method.Get, method.Range), toActive()
		cl.DropCaches(context.Background())
		if got := get(t, cl, mount.Root, "f"); got != content {
			t.Fatalf("%d bytes came back, or others than were written", len(got))
		}
		if near, far = elsewhere(method.Get, method.Range)-near, toActive()-far; near == 0 || far != 0 {
			return fmt.Errorf("%d reads went to a nearer node and %d to the active, 80 ms away", near, far)
		}
		return nil
	})
	if w := where(t, cl, e.Node); w.Read == active.ID() || !strings.HasPrefix(w.Why, "nearest by measured ") || !strings.Contains(w.Why, "the active is measured ") {
		t.Errorf("where says %s, %q; want a nearer node and why", w.Read.Short(), w.Why)
	}
}

func where(t *testing.T, cl *cartwheel.Client, id mount.Inode) (w status.Where) {
	t.Helper()
	if err := json.Unmarshal([]byte(xattr(t, cl, id, "user.cartwheel.where")), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// awaitNear waits until the client knows of a node nearer than the active.
func awaitNear(t *testing.T, cl *cartwheel.Client, active *servertest.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the client to measure", func() error {
		if w := where(t, cl, mount.Root); w.Read == active.ID() {
			return errors.New(w.Why)
		}
		return nil
	})
}

func TestNearest_PassesOverAReplicaThatIsGone(t *testing.T) {
	t.Parallel()
	c, active, answered := farActive(t, 40*time.Millisecond)
	cl := clientOf(t, c, "")
	awaitNear(t, cl, active)
	content := string(bytes.Repeat([]byte("chunk after chunk "), 30_000))
	put(t, cl, mount.Root, "f", content, 0)
	near := where(t, cl, mount.Root).Read
	for _, n := range c.Nodes {
		if n.ID() == near {
			n.Kill()
		}
	}
	cl.DropCaches(context.Background())
	if got := get(t, cl, mount.Root, "f"); got != content {
		t.Fatalf("%d bytes came back, or others than were written", len(got))
	}
	total := int64(0)
	for i, counts := range answered {
		if c.Nodes[i].ID() != near {
			total += counts[method.Get].Load() + counts[method.Range].Load()
		}
	}
	if total == 0 {
		t.Error("no other node was asked for anything")
	}
}

// TestRelay_ClientGoesAroundABrokenLink cuts a client off from the active, which
// the other nodes still reach.
func TestRelay_ClientGoesAroundABrokenLink(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.Socket = "none" }})
	active := c.Active(ids.RootSlice)
	cl := clientOf(t, c, string(rune('a'+(active.Index+1)%3)))
	put(t, cl, mount.Root, "before", "direct", 0)
	nodes := map[string]bool{}
	for _, n := range c.Nodes {
		nodes[string(n.ID())] = true
	}
	// Everything that the active sends the client is lost, and no connection
	// from the client to it comes about.
	active.Server().Host().SetFilter(func(peer string, _ wire.Class, _ wire.Method) wire.Verdict {
		return wire.Verdict{Drop: !nodes[peer]}
	})
	cl.CutOff(active.ID())
	put(t, cl, mount.Root, "during", "over a third node", 0)
	cl.DropCaches(context.Background())
	if got := get(t, cl, mount.Root, "during"); got != "over a third node" {
		t.Errorf("got %q", got)
	}
	if row, err := c.Row(t.Context(), ids.RootSlice); err != nil || row.Active != active.ID() {
		t.Errorf("%s acts now (%v): there was nothing to go around", row.Active, err)
	}
}
