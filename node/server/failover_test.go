package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

const quickLease = time.Second

func quick(_ int, c *server.Config) { c.Lease, c.Session = quickLease, quickLease }

// makeFiles makes files with one byte of content, as long as go on, and
// returns the names that were acknowledged and the longest that one took.
func makeFiles(ctx context.Context, t *testing.T, cl *servertest.Client, prefix string, n int) (names []string, longest time.Duration) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s%04d", prefix, i)
		began := time.Now()
		made, err := cl.Operate(ctx, ids.RootSlice, create(name), nil)
		if err != nil || made.Kind != 0 {
			t.Fatalf("create %s: %v %v", name, made, err)
		}
		body := make([]byte, 9000+i)
		if wrote, err := cl.Operate(ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body); err != nil || wrote.Kind != 0 {
			t.Fatalf("commit %s: %v %v", name, wrote, err)
		}
		names = append(names, name)
		longest = max(longest, time.Since(began))
	}
	return names, longest
}

// checkFiles reads all names back from whoever acts now.
func checkFiles(ctx context.Context, t *testing.T, c *servertest.Cluster, cl *servertest.Client, names []string) {
	t.Helper()
	for _, name := range names {
		servertest.Await(ctx, t, name, func() error {
			var found pb.ResolveResponse
			_, err := cl.Call(ctx, c.Active(ids.RootSlice).ID(), wire.Operation, method.Resolve, &pb.ResolveRequest{
				Header: &pb.ReadHeader{Slice: 1, Principal: &pb.Principal{}}, Dir: uint64(ids.RootObject), Names: [][]byte{[]byte(name)}, Content: true}, nil, &found)
			switch {
			case err != nil:
				return err
			case found.Refusal != nil:
				return fmt.Errorf("refused: %s", found.Refusal.Message)
			case len(found.Steps) != 1 || found.Steps[0].Attr.GetSize() < 9000:
				t.Fatalf("%s: got %v, want the file with its content", name, &found)
			}
			return nil
		})
	}
}

// awaitState waits until a node has a state in the root slice's row.
func awaitState(ctx context.Context, t *testing.T, c *servertest.Cluster, n *servertest.Node, want geoconfig.MemberState) {
	t.Helper()
	servertest.Await(ctx, t, fmt.Sprintf("node %d to be %v", n.Index, want), func() error {
		row, err := c.Row(ctx, ids.RootSlice)
		if err != nil {
			return err
		}
		if m, _ := row.Member(n.ID()); m.State != want {
			return fmt.Errorf("it is %v in %+v", m.State, row)
		}
		return nil
	})
}

// awaitWhole waits until every node is a normal member: on a busy machine one
// may have been taken out, and two copies is the least that goes on.
func awaitWhole(ctx context.Context, t *testing.T, c *servertest.Cluster) {
	t.Helper()
	for _, n := range c.Nodes {
		awaitState(ctx, t, c, n, geoconfig.Normal)
	}
}

func TestFailover_KilledActiveComesBack(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	before, _ := makeFiles(ctx, t, cl, "before", 20)
	awaitWhole(ctx, t, c)
	active := c.Active(ids.RootSlice)
	active.Kill()
	after, longest := makeFiles(ctx, t, cl, "after", 20)
	if limit := quickLease*6/5 + 2*time.Second; longest > limit {
		t.Errorf("the longest pause was %v, want under %v", longest, limit)
	}
	checkFiles(ctx, t, c, cl, append(before, after...))
	active.Start()
	awaitState(ctx, t, c, active, geoconfig.Normal)
	servertest.Await(ctx, t, "the slice to be home", func() error {
		if now := c.Active(ids.RootSlice); now != active {
			return fmt.Errorf("node %d is the active", now.Index)
		}
		return nil
	})
	last, _ := makeFiles(ctx, t, cl, "last", 5)
	awaitWhole(ctx, t, c)
	c.Active(ids.RootSlice).Kill()
	checkFiles(ctx, t, c, cl, append(append(before, after...), last...))
}

func TestHandOver_WaitsForNoLease(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "x", 5)
	active := c.Active(ids.RootSlice)
	done := make(chan error, 1)
	go func() {
		_, err := c.Connect("root").Call(ctx, active.ID(), wire.Operation, method.HandOver, &pb.HandOverRequest{Slice: 1}, nil, &pb.HandOverResponse{})
		done <- err
	}()
	more, longest := makeFiles(ctx, t, cl, "y", 50)
	if err := <-done; err != nil {
		t.Fatalf("hand-over: %v", err)
	}
	if longest > 2*time.Second {
		t.Errorf("the longest pause was %v, want less than a lease of 3 s", longest)
	}
	if now := c.Active(ids.RootSlice); now == active {
		t.Error("the node that handed over is still the active")
	}
	checkFiles(ctx, t, c, cl, append(names, more...))
}

func TestClose_StandbyIsTakenOutFirst(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Configure: quick})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	awaitWhole(ctx, t, c)
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "before", 3)
	active := c.Active(ids.RootSlice)
	standby := c.Nodes[(active.Index+1)%3]
	standby.Stop()
	row, err := c.Row(ctx, ids.RootSlice)
	if m, _ := row.Member(standby.ID()); err != nil || m.State != geoconfig.Failed {
		t.Errorf("it stopped while writes wait for it: %+v, %v", row, err)
	}
	more, _ := makeFiles(ctx, t, cl, "without", 3)
	standby.Start()
	awaitWhole(ctx, t, c)
	checkFiles(ctx, t, c, cl, append(names, more...))
}

func TestTransfer_MemberThatMissedTooMuchGetsTheState(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Configure: func(i int, c *server.Config) {
		quick(i, c)
		c.MissedBytes = 64 << 10
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "x", 10)
	awaitWhole(ctx, t, c)
	var standby *servertest.Node
	for _, n := range c.Nodes {
		if n != c.Active(ids.RootSlice) {
			standby = n
		}
	}
	standby.Kill()
	more, _ := makeFiles(ctx, t, cl, "y", 60)
	standby.Start()
	awaitState(ctx, t, c, standby, geoconfig.Normal)
	last, _ := makeFiles(ctx, t, cl, "z", 5)
	names = append(append(names, more...), last...)
	for _, n := range c.Nodes { // only the one that got the state is left
		if n != standby {
			n.Kill()
		}
	}
	checkCopy(ctx, t, standby, names)
}

// checkCopy reads names and content from a node's own copy.
func checkCopy(ctx context.Context, t *testing.T, n *servertest.Node, names []string) {
	t.Helper()
	servertest.Await(ctx, t, "the copy to hold everything", func() error {
		for i, name := range names {
			if err := n.Server().CheckCopy(ids.RootObject, []byte(name)); err != nil {
				return fmt.Errorf("%d of %d, %s: %w", i, len(names), name, err)
			}
		}
		return nil
	})
}

func TestRestart_KeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	names, _ := makeFiles(ctx, t, c.Connect("root"), "x", 30)
	for _, n := range c.Nodes {
		n.Kill()
	}
	for _, n := range c.Nodes {
		n.Start()
	}
	c.AwaitRoot(ctx)
	checkFiles(ctx, t, c, c.Connect("root"), names)
}

func TestRestart_KnowsWhatItHasOfSlicesAtRest(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	makeFiles(ctx, t, c.Connect("root"), "x", 10)
	awaitWhole(ctx, t, c)
	active := c.Active(ids.RootSlice)
	equal := func(n *servertest.Node) func() error {
		return func() error {
			want, _, err := active.Server().CopySum(ids.RootSlice)
			if err != nil {
				return err
			}
			got, _, err := n.Server().CopySum(ids.RootSlice)
			if err == nil && (got != want || want == 0) {
				err = fmt.Errorf("node %d is at serial %d, the active at %d", n.Index, got, want)
			}
			return err
		}
	}
	for _, n := range c.Nodes {
		if n == active {
			continue
		}
		servertest.Await(ctx, t, "everything to be applied", equal(n))
		n.Kill()
		n.Start()
		// Nothing is written that would tell it.
		servertest.Await(ctx, t, "the node to know what it has", equal(n))
		return
	}
}

func TestCheckpoint_TrimsTheJournalAndLosesNothing(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: func(i int, c *server.Config) {
		quick(i, c)
		c.CheckpointBytes = 256 << 10
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := c.Connect("root")
	names, _ := makeFiles(ctx, t, cl, "x", 100)
	servertest.Await(ctx, t, "checkpoints everywhere", func() error {
		for _, n := range c.Nodes {
			if left := n.Server().JournalBytes(); left > 700<<10 {
				return fmt.Errorf("node %d has %d bytes of journal", n.Index, left)
			}
		}
		return nil
	})
	more, _ := makeFiles(ctx, t, cl, "y", 5)
	for _, n := range c.Nodes {
		n.Kill()
	}
	for _, n := range c.Nodes {
		n.Start()
	}
	c.AwaitRoot(ctx)
	checkFiles(ctx, t, c, c.Connect("root"), append(names, more...))
}

func TestLease_WriterWaitsForThoseOfOthers(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	active := c.Active(ids.RootSlice)
	reader, writer := c.Connect("root"), c.Connect("root")
	revoked := make(chan *pb.RevokeRequest, 16)
	reader.Revoked = func(r *pb.RevokeRequest) *pb.RevokeResponse {
		<-time.After(200 * time.Millisecond) // a slow client: the writer must wait for its answer
		revoked <- r
		return &pb.RevokeResponse{}
	}
	session, err := reader.Session(ctx, active.ID())
	if err != nil || session.Session == 0 || session.LeftNs <= 0 {
		t.Fatalf("keep-alive: %v %v", session, err)
	}
	var found pb.ResolveResponse
	_, err = reader.Call(ctx, active.ID(), wire.Operation, method.Resolve, &pb.ResolveRequest{Header: &pb.ReadHeader{Slice: 1, Session: session.Session,
		Principal: &pb.Principal{}}, Dir: uint64(ids.RootObject), Names: [][]byte{[]byte("new")}}, nil, &found)
	if err != nil || len(found.Grants) == 0 || found.Grants[0].What != pb.Grant_NAMES || fault.Kind(found.Steps[0].Kind) != fault.NotFound {
		t.Fatalf("resolve: %v %v, want a lease on the names and no such name", &found, err)
	}
	if made, err := writer.Operate(ctx, ids.RootSlice, create("new"), nil); err != nil || made.Kind != 0 {
		t.Fatalf("create: %v %v", made, err)
	}
	select {
	case r := <-revoked:
		if len(r.Items) == 0 || r.Items[0].Object != uint64(ids.RootObject) {
			t.Errorf("got revocation %v, want one of the root's names", r)
		}
	default:
		t.Error("the directory changed before the one with a lease on it had answered")
	}
}
