package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// directoryAt makes a directory in a slice that one node alone keeps, and names
// it in the root.
func directoryAt(ctx context.Context, t *testing.T, c *servertest.Cluster, cl *servertest.Client, n *servertest.Node, name string) ids.Object {
	t.Helper()
	root := uint64(ids.RootObject)
	row := placeAt(ctx, t, cl, c.Active(ids.RootSlice), &pb.Cues{Site: []string{"a", "b", "c"}[n.Index], RepLevel: 1})
	if row.Active != n.ID() || len(row.Members) != 1 {
		t.Fatalf("got %+v, want a slice at node %d alone", row, n.Index)
	}
	made := do(ctx, t, cl, row.ID, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: tree.TypeDir | 0o755, Parent: root}}})
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_LinkName{LinkName: &pb.LinkName{
		Dir: root, Name: []byte(name), Object: made.Attr.Object, Mode: tree.TypeDir, Made: made.Made}}})
	return ids.Object(made.Attr.Object)
}

// awaitSettled waits until a node's copy of a slice shows no intent.
func awaitSettled(ctx context.Context, t *testing.T, n *servertest.Node, id ids.Slice) {
	t.Helper()
	servertest.Await(ctx, t, fmt.Sprintf("node %d to show no intent in slice %d", n.Index, id), func() error {
		open, err := tree.OpenIntents(n.Server().Committed(id))
		if err != nil || len(open) > 0 {
			return errors.Join(fmt.Errorf("%d are open", len(open)), err)
		}
		prepared, err := tree.Prepared(n.Server().Committed(id))
		if err != nil || len(prepared) > 0 {
			return errors.Join(fmt.Errorf("%d are prepared", len(prepared)), err)
		}
		return nil
	})
}

// copyHas reports whether a node's copy has a name.
func copyHas(t *testing.T, n *servertest.Node, dir ids.Object, name string) bool {
	t.Helper()
	_, err := tree.Lookup(n.Server().Committed(dir.Slice()), dir, []byte(name))
	if err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatalf("%s at node %d: %v", name, n.Index, err)
	}
	return err == nil
}

// holdUp holds frames up from the first on that finds its condition met, and
// lets them all go at one time.
type holdUp struct {
	mu    sync.Mutex // guards below
	until time.Time
}

// delay says how long a frame that is sent now waits.
func (h *holdUp) delay(span time.Duration, begins func() bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() && begins() {
		h.until = time.Now().Add(span)
	}
	return max(0, time.Until(h.until))
}

// ends is when all go; never, if none was held up.
func (h *holdUp) ends() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.IsZero() {
		return time.Unix(1<<40, 0)
	}
	return h.until
}

// TestIntent_LateDecisionLeavesARenameWhole checks that the intent of a
// rename is not given up while its decision is on its way to the standbys.
func TestIntent_LateDecisionLeavesARenameWhole(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	c := servertest.Start(t, servertest.Options{Log: testing.Verbose(), Depend: func(_ int, d *server.Deps) { d.StepTimeout = patience }})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	awaitWhole(ctx, t, c)
	cl := c.Connect("root")
	active := c.Active(ids.RootSlice)
	other := c.Nodes[(active.Index+1)%len(c.Nodes)]
	dir := directoryAt(ctx, t, c, cl, other, "far")
	do(ctx, t, cl, ids.RootSlice, create("near"))
	// Beacons pass, so that the lease holds.
	var gate holdUp
	active.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) (v wire.Verdict) {
		if m == method.Replica {
			v.Delay = gate.delay(6*patience, func() bool {
				prepared, err := tree.Prepared(other.Server().Committed(dir.Slice()))
				return err == nil && len(prepared) > 0
			})
		}
		return v
	})
	do(ctx, t, cl, ids.RootSlice, &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{
		Dir: uint64(ids.RootObject), Name: []byte("near"), NewDir: uint64(dir), NewName: []byte("moved")}}})
	if time.Now().Before(gate.ends()) {
		t.Error("the rename was answered before its decision reached a standby: the test shows nothing")
	}
	for _, n := range c.Nodes {
		awaitSettled(ctx, t, n, ids.RootSlice)
	}
	awaitSettled(ctx, t, other, dir.Slice())
	moved := copyHas(t, other, dir, "moved")
	for _, n := range c.Nodes {
		if near := copyHas(t, n, ids.RootObject, "near"); near || !moved {
			t.Errorf("node %d: near is there: %v; far/moved is there: %v; want the one acknowledged name", n.Index, near, moved)
		}
	}
	for _, n := range c.Nodes {
		servertest.Await(ctx, t, fmt.Sprintf("node %d to forget the intent", n.Index), func() error {
			if seen := n.Server().IntentsSeen(); seen > 0 {
				return fmt.Errorf("it remembers %d", seen)
			}
			return nil
		})
	}
}
