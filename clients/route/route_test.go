package route_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// killed is a router that knows a slice's active, which then ends. Another node takes over
// within seconds.
func killed(t *testing.T) (r *route.Router, old ids.Node) {
	t.Helper()
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) { c.Lease, c.Session = time.Second, time.Second }})
	r = route.New(connected(t.Context(), t, c), slog.New(slog.DiscardHandler), nil)
	t.Cleanup(r.Close)
	row, err := r.Row(t.Context(), ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	c.Active(ids.RootSlice).Kill()
	return r, row.Active
}

// connected is a client's connections to a cluster, until the test ends.
func connected(ctx context.Context, t *testing.T, c *servertest.Cluster) *contact.Cluster {
	t.Helper()
	return connectedBy(ctx, t, c, nil)
}

// connectedBy is connected with a clock; nil: the machine's.
func connectedBy(ctx context.Context, t *testing.T, c *servertest.Cluster, clock boottime.Func) *contact.Cluster {
	t.Helper()
	key := filepath.Join(t.TempDir(), "user.key")
	encoded, err := c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		f.Nodes = append(f.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	cluster, err := contact.New(contact.Options{File: f, Site: "b", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cluster.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// TestRow_ASilentNodeHoldsUpNoQuestion has the nearest node send no answers. The
// others answer in less than the time that one node is given.
func TestRow_ASilentNodeHoldsUpNoQuestion(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cluster := connected(ctx, t, c)
	near := cluster.Nearest()[0]
	for _, n := range c.Nodes {
		if n.ID() == near {
			n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict { return wire.Verdict{Drop: m == method.Rows} })
		}
	}
	r := route.New(cluster, slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	short, cancelShort := context.WithTimeout(ctx, 1800*time.Millisecond) // one node alone is given 2 s
	defer cancelShort()
	row, err := r.Row(short, ids.RootSlice)
	if err != nil || row.ID != ids.RootSlice {
		t.Errorf("got %+v, %v; want the root's row from another node", row, err)
	}
	if _, err := r.Row(ctx, 77); !fault.Is(err, fault.NotFound) {
		t.Errorf("a slice that nobody knows: %v, want NotFound", err)
	}
}

// TestActive_AwaitsTheRootOfANewCluster asks for the root before anybody made it.
func TestActive_AwaitsTheRootOfANewCluster(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Expected: 3, Rootless: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := route.New(connected(ctx, t, c), slog.New(slog.DiscardHandler), nil)
	defer r.Close()
	if _, err := r.Row(ctx, ids.RootSlice); !fault.Is(err, fault.Again) {
		t.Fatalf("the root that is not there yet: %v, want Again", err)
	}
	asked := make(chan error, 1)
	go func() {
		asked <- r.Active(ctx, ids.RootSlice, func(context.Context, ids.Node, ids.Epoch) (*pb.Refusal, error) { return nil, nil })
	}()
	c.Join("b")
	if err := <-asked; err != nil {
		t.Errorf("the root of a new cluster: %v", err)
	}
}

// TestActive_FindsTheNewActiveInLittleTime ends the active of a slice, to which requests go
// that have a tenth of a second each. They come to go to the node that took over.
func TestActive_FindsTheNewActiveInLittleTime(t *testing.T) {
	r, old := killed(t)
	servertest.Await(t.Context(), t, "a request to reach another node", func() error {
		return r.Active(within(t, 100*time.Millisecond), ids.RootSlice, func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
			if node == old {
				return nil, waits(ctx)
			}
			return nil, nil
		})
	})
}
