package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// drilled is a cluster with a drill under way.
type drilled struct {
	t         *testing.T
	ctx       context.Context
	c         *servertest.Cluster
	commander *servertest.Client
	answers   chan drilledNode
}

// drilledNode is how a drill ended at one node.
type drilledNode struct {
	node   *servertest.Node
	answer *pb.DrillResponse
	err    error
}

// startDrilled starts a cluster of three sites, all of whose nodes are members of the root.
func startDrilled(t *testing.T) *drilled {
	t.Helper()
	c := servertest.Start(t, servertest.Options{Configure: quick, Log: testing.Verbose()})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	awaitWhole(ctx, t, c)
	return &drilled{t: t, ctx: ctx, c: c, commander: c.Connect("root"), answers: make(chan drilledNode, len(c.Nodes))}
}

// ask orders a drill at one node.
func (d *drilled) ask(n *servertest.Node, req *pb.DrillRequest) (*pb.DrillResponse, error) {
	answer := &pb.DrillResponse{}
	b, err := d.commander.Call(d.ctx, n.ID(), wire.Operation, method.Drill, req, nil, answer)
	b.Release()
	return answer, err
}

// begin orders a drill at all nodes, and returns once it is under way at each.
func (d *drilled) begin(req *pb.DrillRequest) {
	d.t.Helper()
	req.Id = "test"
	for _, n := range d.c.Nodes {
		go func() {
			answer, err := d.ask(n, req)
			d.answers <- drilledNode{n, answer, err}
		}()
	}
	d.await("the drill to be under way", func(n *servertest.Node) bool { return d.isBusy(n) })
}

// isBusy reports whether a node says that a drill is under way.
func (d *drilled) isBusy(n *servertest.Node) bool {
	_, err := d.ask(n, &pb.DrillRequest{Id: "other", Kind: string(drill.GeoConfig), ForNs: int64(time.Second), Check: true})
	return fault.Is(err, fault.Busy)
}

// await waits until something is so of all nodes.
func (d *drilled) await(what string, is func(*servertest.Node) bool) {
	d.t.Helper()
	servertest.Await(d.ctx, d.t, what, func() error {
		for _, n := range d.c.Nodes {
			if !is(n) {
				return fmt.Errorf("not so of node %d", n.Index)
			}
		}
		return nil
	})
}

// awaitOther waits until another node than n is the root's active.
func (d *drilled) awaitOther(n *servertest.Node) {
	d.t.Helper()
	servertest.Await(d.ctx, d.t, "a takeover", func() error {
		if d.c.Active(ids.RootSlice) == n {
			return fmt.Errorf("node %d is the active", n.Index)
		}
		return nil
	})
}

// ends takes the answers of all nodes, which say whether the drill lasted as long as it was to.
func (d *drilled) ends(whole bool) {
	d.t.Helper()
	for range d.c.Nodes {
		if a := <-d.answers; a.err != nil || a.answer.Whole != whole || a.answer.LastedNs <= 0 {
			d.t.Errorf("node %d: got %v, %v, want whole: %v", a.node.Index, a.answer, a.err, whole)
		}
	}
}

// kill is a drill that kills a node.
func kill(n *servertest.Node, d time.Duration) *pb.DrillRequest {
	return &pb.DrillRequest{Kind: string(drill.KillActive), Node: string(n.ID()), ForNs: int64(d)}
}

// TestDrill_KilledActiveIsTakenOver has the active play dead for some leases. Another member
// takes over and writes go on. The node comes back by itself, with all that was written.
func TestDrill_KilledActiveIsTakenOver(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	cl := d.c.Connect("root")
	before, _ := makeFiles(d.ctx, t, cl, "before", 5)
	active := d.c.Active(ids.RootSlice)
	d.begin(kill(active, 8*quickLease))
	during, _ := makeFiles(d.ctx, t, cl, "during", 5)
	d.awaitOther(active)
	d.ends(true)
	awaitWhole(d.ctx, t, d.c)
	for _, n := range d.c.Nodes {
		if n != active {
			n.Kill()
			defer n.Start()
			break
		}
	}
	checkFiles(d.ctx, t, d.c, cl, append(before, during...))
}

// TestDrill_EndsWithItsCommander has the commander go away while much of the time is left.
func TestDrill_EndsWithItsCommander(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	active := d.c.Active(ids.RootSlice)
	d.begin(kill(active, drill.Longest))
	d.awaitOther(active)
	if err := d.commander.Host.Close(); err != nil {
		t.Fatal(err)
	}
	for range d.c.Nodes {
		<-d.answers
	}
	d.commander = d.c.Connect("root")
	awaitWhole(d.ctx, t, d.c)
	d.await("the drill to be over", func(n *servertest.Node) bool { return !d.isBusy(n) })
}

// TestDrill_ARestartEndsIt restarts the node that plays dead. It is there again at once, and
// the others go on with what is left.
func TestDrill_ARestartEndsIt(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	active := d.c.Active(ids.RootSlice)
	d.begin(kill(active, drill.Longest))
	d.awaitOther(active)
	active.Kill()
	active.Start()
	awaitWhole(d.ctx, t, d.c)
	if d.isBusy(active) {
		t.Error("the restarted node says that a drill is under way")
	}
}

// TestDrill_CutLeavesSitesApart cuts the site of a standby off. The other two go on without
// it. Clients of the site reach its node alone, and others do not reach it.
func TestDrill_CutLeavesSitesApart(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	active := d.c.Active(ids.RootSlice)
	away := d.c.Nodes[(active.Index+1)%len(d.c.Nodes)]
	site := []string{"a", "b", "c"}[away.Index]
	cl := d.c.Connect("root")
	d.begin(&pb.DrillRequest{Kind: string(drill.Cut), Site: site, ForNs: int64(8 * quickLease)})
	for _, x := range []struct {
		from string
		to   *servertest.Node
		want fault.Kind
	}{
		{site, away, fault.None}, {site, active, fault.Unreachable},
		{"elsewhere", away, fault.Unreachable}, {"elsewhere", active, fault.None},
	} {
		client := d.c.Connect("root")
		client.Site = x.from
		b, err := client.Call(d.ctx, x.to.ID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, &pb.StatusResponse{})
		b.Release()
		if !fault.Is(err, x.want) && (err != nil || x.want != fault.None) {
			t.Errorf("a client at %q asks node %d: got %v, want %v", x.from, x.to.Index, err, x.want)
		}
	}
	awaitState(d.ctx, t, d.c, away, geoconfig.Failed)
	names, _ := makeFiles(d.ctx, t, cl, "during", 3)
	d.ends(true)
	awaitWhole(d.ctx, t, d.c)
	checkFiles(d.ctx, t, d.c, cl, names)
}

// TestDrill_GeoConfigIsAway takes geo-config away from all nodes. Writes go on, all nodes say
// that it is away, and that it is back afterwards.
func TestDrill_GeoConfigIsAway(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	cl := d.c.Connect("root")
	reaches := func(n *servertest.Node) bool {
		var a pb.StatusResponse
		b, err := cl.Call(d.ctx, n.ID(), wire.Operation, method.Status, &pb.StatusRequest{}, nil, &a)
		b.Release()
		var s status.Node
		if err == nil {
			err = json.Unmarshal(a.Status, &s)
		}
		if err != nil {
			t.Error(err)
		}
		return s.GeoConfig.Reachable
	}
	d.begin(&pb.DrillRequest{Kind: string(drill.GeoConfig), ForNs: int64(4 * quickLease)})
	d.await("geo-config to be away", func(n *servertest.Node) bool { return !reaches(n) })
	makeFiles(d.ctx, t, cl, "during", 3)
	d.ends(true)
	d.await("geo-config to be back", reaches)
}

// TestDrill_IsRefused asks for drills that make no sense, and for two at once.
func TestDrill_IsRefused(t *testing.T) {
	t.Parallel()
	d := startDrilled(t)
	n := d.c.Nodes[0]
	for _, x := range []struct {
		name string
		req  *pb.DrillRequest
		want fault.Kind
	}{
		{"longer than may be", kill(n, drill.Longest+1), fault.Invalid},
		{"of no time", kill(n, 0), fault.Invalid},
		{"without a node", &pb.DrillRequest{Kind: string(drill.KillActive), ForNs: 1}, fault.Invalid},
		{"without a site", &pb.DrillRequest{Kind: string(drill.Cut), ForNs: 1}, fault.Invalid},
		{"of a kind to come", &pb.DrillRequest{Kind: "flood", ForNs: 1}, fault.NotSupported},
	} {
		x.req.Id = "test"
		if _, err := d.ask(n, x.req); !fault.Is(err, x.want) {
			t.Errorf("a drill %s: got %v, want %v", x.name, err, x.want)
		}
	}
	hasty := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.FailedAfter = time.Minute }})
	b, err := hasty.Connect("root").Call(d.ctx, hasty.Nodes[0].ID(), wire.Operation, method.Drill,
		&pb.DrillRequest{Id: "test", Kind: string(drill.GeoConfig), ForNs: int64(31 * time.Second)}, nil, &pb.DrillResponse{})
	b.Release()
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("a drill so long that the node is replaced: got %v, want invalid", err)
	}
	d.begin(&pb.DrillRequest{Kind: string(drill.GeoConfig), ForNs: int64(3 * quickLease)})
	if _, err := d.ask(n, &pb.DrillRequest{Id: "second", Kind: string(drill.GeoConfig), ForNs: 1}); !fault.Is(err, fault.Busy) {
		t.Errorf("a second drill: got %v, want busy", err)
	}
	d.ends(true)
}
