package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// openWith counts the intents of the root's slice in which another slice takes part.
func openWith(t *testing.T, active *servertest.Node, other ids.Slice) (n int) {
	t.Helper()
	open, err := tree.OpenIntents(active.Server().Committed(ids.RootSlice))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open {
		if slices.Contains(o.Others(), other) {
			n++
		}
	}
	return n
}

// leaveIntents begins renames from the root into a directory that does not
// answer, and returns when all their intents are open.
func leaveIntents(ctx context.Context, t *testing.T, cl *servertest.Client, active *servertest.Node, dir ids.Object, names []string) {
	t.Helper()
	asked, leave := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			_, _ = cl.Operate(asked, ids.RootSlice, &pb.Operation{TimeNs: 7, Op: &pb.Operation_Rename{Rename: &pb.Rename{
				Dir: uint64(ids.RootObject), Name: []byte(name), NewDir: uint64(dir), NewName: []byte(name)}}}, nil)
		})
	}
	servertest.Await(ctx, t, "the renames to begin", func() error {
		if n := openWith(t, active, dir.Slice()); n < len(names) {
			return fmt.Errorf("%d of %d", n, len(names))
		}
		return nil
	})
	leave()
	all.Wait()
}

// silence makes a node silent for steps of intents, and counts those lost.
type silence struct {
	on   atomic.Bool
	lost atomic.Int64
}

func (s *silence) drops() bool {
	if !s.on.Load() {
		return false
	}
	s.lost.Add(1)
	return true
}

// TestIntent_SilentNodeHoldsUpNoOthers leaves more intents with a node
// that stays silent than could time out one after the other within the test.
func TestIntent_SilentNodeHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Depend: func(_ int, d *server.Deps) { d.StepTimeout = 500 * time.Millisecond }})
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	awaitWhole(ctx, t, c)
	cl := c.Connect("root")
	active := c.Active(ids.RootSlice)
	var dirs []ids.Object
	var cut [2]silence
	peers := map[string]*silence{}
	for _, n := range c.Nodes {
		if n != active {
			peers[string(n.ID())] = &cut[len(dirs)]
			dirs = append(dirs, directoryAt(ctx, t, c, cl, n, fmt.Sprintf("far%d", len(dirs))))
		}
	}
	var many []string
	for n := range 64 {
		many = append(many, fmt.Sprintf("silent%02d", n))
		do(ctx, t, cl, ids.RootSlice, create(many[n]))
	}
	do(ctx, t, cl, ids.RootSlice, create("one"))
	active.Server().Host().SetFilter(func(peer string, _ wire.Class, m wire.Method) wire.Verdict {
		silent := peers[peer]
		return wire.Verdict{Drop: m == method.Operate && silent != nil && silent.drops()}
	})
	cut[0].on.Store(true)
	cut[1].on.Store(true)
	leaveIntents(ctx, t, cl, active, dirs[0], many)
	leaveIntents(ctx, t, cl, active, dirs[1], []string{"one"})
	servertest.Await(ctx, t, "PREPARE and ABORT to be lost, so that the coordinator leaves its intent", func() error {
		if n := cut[1].lost.Load(); n < 2 {
			return fmt.Errorf("%d steps were lost", n)
		}
		return nil
	})
	cut[1].on.Store(false)
	servertest.Await(ctx, t, "the intent with the node that answers again to be finished", func() error {
		if n := openWith(t, active, dirs[1].Slice()); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	if n := openWith(t, active, dirs[0].Slice()); n != len(many) {
		t.Errorf("%d intents with the silent node are open, want all %d: the test shows nothing", n, len(many))
	}
	cut[0].on.Store(false)
	awaitSettled(ctx, t, active, ids.RootSlice)
}
