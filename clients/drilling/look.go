package drilling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/whatif"
	"cartwheel.dev/node/wire"
)

// Seen is how a cluster stands, as its nodes say.
type Seen struct {
	Nodes []SeenNode
	// Slices are the newest rows, by number, each as its active tells of it where that
	// answers.
	Slices []status.Slice
}

// SeenNode is what one node says.
type SeenNode struct {
	geoconfig.Node
	Status status.Node
	// Refuses is why the node would not take part in a drill; nil: it would.
	Refuses error
	// Err is why the node does not say how it is.
	Err error
}

// lookLimit bounds the question to one node.
const lookLimit = 3 * time.Second

// look asks all nodes at once.
func look(ctx context.Context, c *contact.Cluster) Seen {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	nodes := c.Nodes()
	out := Seen{Nodes: make([]SeenNode, len(nodes))}
	lists := make([][]status.Slice, len(nodes))
	var asking sync.WaitGroup
	for i, n := range nodes {
		asking.Go(func() {
			out.Nodes[i].Node = n
			out.Nodes[i].Status, lists[i], out.Nodes[i].Err = ask(ctx, c, n.ID)
		})
	}
	asking.Wait()
	newest := map[ids.Slice]status.Slice{}
	for i, list := range lists {
		for _, s := range list {
			old, known := newest[s.ID]
			if !known || s.Epoch > old.Epoch || s.Epoch == old.Epoch && nodes[i].ID == s.Active {
				newest[s.ID] = s
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		out.Slices = append(out.Slices, newest[id])
	}
	return out
}

// ask asks one node how it is and what slices it knows.
func ask(ctx context.Context, c *contact.Cluster, id ids.Node) (s status.Node, list []status.Slice, err error) {
	const op fault.Op = "drilling.ask"
	var a pb.StatusResponse
	b, err := c.Call(ctx, id, wire.Operation, method.Status, &pb.StatusRequest{}, nil, &a)
	b.Release()
	if err == nil {
		err = fault.Wrap(fault.Corrupt, op, string(id), json.Unmarshal(a.Status, &s))
	}
	if err != nil {
		return s, nil, err
	}
	var rows pb.SliceListResponse
	b, err = c.Call(ctx, id, wire.Operation, method.SliceList, &pb.SliceListRequest{}, nil, &rows)
	b.Release()
	if err != nil {
		return s, nil, err
	}
	list = make([]status.Slice, len(rows.Slices))
	for i, data := range rows.Slices {
		if err := json.Unmarshal(data, &list[i]); err != nil {
			return s, nil, fault.Wrap(fault.Corrupt, op, string(id), err)
		}
	}
	return s, list, nil
}

// check asks all nodes whether they would take part in a drill.
func (s *Seen) check(ctx context.Context, c *contact.Cluster, p drill.Plan) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	var asking sync.WaitGroup
	for i := range s.Nodes {
		asking.Go(func() {
			n := &s.Nodes[i]
			b, err := c.Call(ctx, n.ID, wire.Operation, method.Drill, order(p, true), nil, &pb.DrillResponse{})
			b.Release()
			n.Refuses = err
		})
	}
	asking.Wait()
}

// order is the request that a plan is for each node.
func order(p drill.Plan, check bool) *pb.DrillRequest {
	return &pb.DrillRequest{Id: p.ID, Kind: string(p.Kind), Node: string(p.Node), Site: string(p.Site), ForNs: int64(p.For), Check: check}
}

// lacks says what a slice is short of; empty: nothing.
func lacks(s *status.Slice) string {
	normal := len(s.Normals())
	switch {
	case s.Role == "active" && !s.Serving:
		return "does not serve: " + s.Why
	case normal < s.Policy.Level:
		return fmt.Sprintf("has %d of %d copies", normal, s.Policy.Level)
	}
	return ""
}

// Obstacles says for people why a drill must not begin now, one reason each; none: it may.
// With acceptPause, slices may stop that no other site can take over.
func (s *Seen) Obstacles(p drill.Plan, acceptPause bool) []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i := range s.Nodes {
		n := &s.Nodes[i]
		name := fmt.Sprintf("node …%s at %s", string(n.ID)[max(0, len(n.ID)-8):], n.Site)
		scrub := n.Status.Scrub
		switch {
		case n.Err != nil:
			add("%s does not answer: start it", name)
			continue
		case fault.Is(n.Refuses, fault.Busy):
			add("%s takes part in another drill: wait until that is over", name)
		case n.Refuses != nil:
			add("%s would not take part: %v", name, n.Refuses)
		}
		if n.Draining {
			add("%s is being drained: wait until it is empty, or end that with `cartwheel node undrain`", name)
		}
		if !n.Status.GeoConfig.Reachable {
			add("%s does not reach geo-config, without which no standby takes over", name)
		}
		if scrub != nil && (scrub.LostChunks > 0 || len(scrub.Different) > 0 || scrub.Running && scrub.Ordered) {
			add("%s has damage to repair, or a scrub that was ordered: wait until `cartwheel scrub --report` shows neither", name)
		}
	}
	for i := range s.Slices {
		if why := lacks(&s.Slices[i]); why != "" {
			add("slice %d %s: wait until it is whole", s.Slices[i].ID, why)
		}
	}
	if len(s.Slices) == 0 {
		add("no node tells of any slice")
	}
	if !acceptPause && len(out) == 0 {
		out = append(out, s.stopping(p)...)
	}
	return out
}

// stopping says which slices would stop until the drill is over.
func (s *Seen) stopping(p drill.Plan) []string {
	state := whatif.State{}
	for i := range s.Nodes {
		state.Nodes = append(state.Nodes, whatif.Node{Node: s.Nodes[i].Node})
	}
	for i := range s.Slices {
		state.Slices = append(state.Slices, whatif.Slice{SliceRow: s.Slices[i].SliceRow, Bytes: whatif.UnknownSize})
	}
	var change whatif.Change
	switch p.Kind {
	case drill.KillActive:
		change = whatif.Change{Kind: whatif.LoseNode, Node: p.Node}
	case drill.Cut:
		change = whatif.Change{Kind: whatif.LoseSite, Site: p.Site}
	default:
		return nil // what is configured goes on
	}
	o, err := whatif.Predict(state, []whatif.Change{change}, whatif.Assumptions{FailedAfter: time.Hour})
	if err != nil {
		return []string{"what it would do cannot be predicted: " + err.Error()}
	}
	var stops []string
	for i := range o.Slices {
		if x := &o.Slices[i]; x.During.Stands == "waiting" || x.During.Stands == "lost" {
			stops = append(stops, fmt.Sprint(x.ID))
		}
	}
	if len(stops) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("slices %s would stop until the drill is over, because no standby can take over: --accept-pause allows that", strings.Join(stops, ", "))}
}
