package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/leadership"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// status tells what the node knows of itself.
func (s *Server) status(ctx context.Context, _ *identity.Who, _ *pb.StatusRequest) (proto.Message, error) {
	u := s.store.Usage()
	out := status.Node{
		ID: s.id, Site: ids.Site(s.config.Site), Cluster: s.Cluster(), Version: s.deps.Version,
		Incarnation: s.store.Incarnation(), Addresses: s.host.Addresses(), UptimeNS: s.clock() - s.began,
		CapacityBytes: s.space.Capacity(u), UsedBytes: u.Journal + u.Chunks + u.Meta, FreeBytes: u.Disk.Free, ReadOnly: s.space.IsFull(),
	}
	out.GeoConfig.Reachable = true
	if away := s.directory.Away(); !away.IsZero() {
		out.GeoConfig = status.GeoConfig{AwayNS: time.Since(away), Warning: "geo-config is away: what is configured goes on, changes wait"}
	} else if p, err := s.geo.Properties(ctx); err == nil {
		out.GeoConfig.Kind, out.GeoConfig.SinglePoint = p.Name, p.SinglePoint
	}
	if out.GeoConfig.SinglePoint {
		out.GeoConfig.Warning = "the configuration store is a single process: while it is away, changes wait"
	}
	s.loop.EachPublished(func(p *operate.Published) bool {
		switch p.Role {
		case replica.RoleActive, replica.RoleLeading, replica.RoleYielding:
			out.SlicesActive++
		case replica.RoleStandby:
			out.SlicesStandby++
		case replica.RoleJunior:
			out.SlicesJunior++
		}
		return true
	})
	out.Sessions, out.ObjectLeases = s.sessions.Len()
	for _, n := range s.directory.Nodes() {
		if n.ID != s.id {
			path, up := s.host.Path(string(n.ID))
			out.Peers = append(out.Peers, status.Peer{ID: n.ID, Site: n.Site, Connected: up, RTTNS: path.RTT})
		}
	}
	out.Findings = s.survey.Findings()
	encoded, err := json.Marshal(out)
	return &pb.StatusResponse{Status: encoded}, fault.Wrap(fault.Corrupt, "server.Status", "", err)
}

// sliceList lists the slices as this node sees them.
func (s *Server) sliceList(ctx context.Context, _ *identity.Who, _ *pb.SliceListRequest) (proto.Message, error) {
	statuses := map[ids.Slice]replica.Status{}
	rows := s.directory.Slices()
	err := s.loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		for _, row := range rows {
			if st, ok := core.Status(row.ID); ok {
				statuses[row.ID] = st
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out := &pb.SliceListResponse{}
	for _, row := range rows {
		st, known := statuses[row.ID]
		encoded, err := json.Marshal(s.reportSlice(row, st, known))
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, "server.SliceList", "", err)
		}
		out.Slices = append(out.Slices, encoded)
	}
	return out, nil
}

func (s *Server) reportSlice(row geoconfig.SliceRow, st replica.Status, known bool) status.Slice {
	out := status.Slice{SliceRow: row, Role: "none", Members: s.members(row)}
	if known {
		out.Role, out.Commit = st.Role.String(), st.Commit
	}
	if p := s.loop.Published(row.ID); p != nil {
		out.Applied = ids.Serial(p.Applied.Load())
		out.Serving = p.Serves(s.clock())
	}
	if !out.Serving {
		out.Why = "this node is " + out.Role + " here"
	}
	if state, err := tree.ReadState(operate.Committed(s.store.Meta(), row.ID)); err == nil {
		out.Objects, out.StoredBytes = state.Objects, new(int64(state.Stored))
	}
	normal := len(row.Normals())
	out.Protected = normal >= row.Policy.Level
	if !out.Protected {
		out.Lacks = fmt.Sprintf("%d of %d replicas are up to date", normal, row.Policy.Level)
	}
	return out
}

// members lists a slice's members with their sites, the active first.
func (s *Server) members(row geoconfig.SliceRow) []status.Member {
	out := make([]status.Member, 0, len(row.Members))
	for _, m := range row.Members {
		r := status.Member{Node: m.Node, Site: s.siteOf(m.Node), State: m.State.String(), Active: m.Node == row.Active}
		if r.Active {
			out = append([]status.Member{r}, out...)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// where tells where an object is, from this node's copy.
func (s *Server) where(ctx context.Context, w *identity.Who, req *pb.WhereRequest) (proto.Message, error) {
	const op fault.Op = "server.Where"
	o := ids.Object(req.Object)
	row, ok := s.directory.Slice(o.Slice())
	if !ok {
		return nil, fault.E(fault.NotFound, op, o.String(), "this node knows no such slice")
	}
	p := s.loop.Published(o.Slice())
	_, member := row.Member(s.id)
	if !member || p == nil {
		return nil, fault.Errorf(fault.NotActive, op, o.String(), "this node has no copy; ask %s", row.Active)
	}
	who := s.access.Asker(w, nil)
	if err := s.reading.Reached(ctx, &who, o, req.Ticket); err != nil {
		return nil, err
	}
	attr, err := tree.GetAttr(operate.Committed(s.store.Meta(), o.Slice()), o, false, false)
	if err != nil {
		return nil, err
	}
	out := status.Where{Object: o, Slice: row.ID, Epoch: row.Epoch, Policy: row.Policy, Read: s.id,
		Version: attr.Version, Change: attr.Change, Size: attr.Size}
	for _, c := range cue.Kept(attr.Cues) {
		out.Cues = append(out.Cues, c.String())
	}
	if members := s.members(row); len(members) > 0 {
		out.Active, out.Others = members[0], members[1:]
	}
	switch {
	case p.Serves(s.clock()):
		out.Why = "this node is the slice's active: it alone knows the current version"
	default:
		out.Why = "this node was asked and has a copy; the active may know a newer version"
	}
	encoded, err := json.Marshal(out)
	return &pb.WhereResponse{Where: encoded}, fault.Wrap(fault.Corrupt, op, "", err)
}

// handOver passes this node's part in a slice on.
func (s *Server) handOver(ctx context.Context, w *identity.Who, req *pb.HandOverRequest) (proto.Message, error) {
	const op fault.Op = "server.HandOver"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	row, ok := s.directory.Slice(ids.Slice(req.Slice))
	if !ok {
		return nil, fault.E(fault.NotFound, op, fmt.Sprintf("slices/%d", req.Slice), "there is no such slice")
	}
	to := ids.Node(req.To)
	if to == "" {
		others := leadership.Successors(row, s.id)
		if len(others) == 0 {
			return nil, fault.E(fault.NotFound, op, fmt.Sprintf("slices/%d", req.Slice), "no other member is up to date")
		}
		to = others[0]
	}
	var kind fault.Kind
	err := s.record(ctx, w, "slice.hand-over", geoconfig.SliceKey(row.ID).String(), "from "+string(s.id)+" to "+string(to))
	if err == nil {
		kind, err = s.leader.HandOver(ctx, row.ID, to)
	}
	if err == nil && kind != fault.None {
		err = fault.E(kind, op, fmt.Sprintf("slices/%d", req.Slice), "the slice cannot be handed over now")
	}
	resume := func() {}
	if err == nil {
		resume, err = wire.Yield(ctx)
	}
	if err != nil {
		return nil, err
	}
	defer resume()
	for err == nil {
		if now, ok := s.directory.Slice(row.ID); ok && now.Active != s.id {
			return &pb.HandOverResponse{}, nil
		}
		select {
		case <-ctx.Done():
			err = fault.Wrap(fault.TimedOut, op, "", ctx.Err())
		case <-s.directory.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, err
}

// dropCaches empties what is kept in memory to serve reads.
func (s *Server) dropCaches(ctx context.Context, w *identity.Who, _ *pb.DropCachesRequest) (proto.Message, error) {
	if err := w.Order("server.DropCaches"); err != nil {
		return nil, err
	}
	if err := s.record(ctx, w, "node.drop-caches", geoconfig.Node{ID: s.id}.Key().String(), ""); err != nil {
		return nil, err
	}
	s.content.Nodes.Drop()
	s.store.Meta().DropCache()
	return &pb.DropCachesResponse{}, nil
}

// statfs says how much room there is.
func (s *Server) statfs(context.Context, *identity.Who, *pb.StatfsRequest) (proto.Message, error) {
	u := s.store.Usage()
	total, free := s.space.Capacity(u), max(s.space.Free(u)-s.config.ReserveBytes, 0)
	var objects uint64
	for _, row := range s.leading() {
		state, err := tree.ReadState(operate.Committed(s.store.Meta(), row.ID))
		if err != nil {
			return nil, fault.Wrap(fault.IO, "server.Statfs", "", err)
		}
		objects += state.Objects
	}
	// Another slice can always be made: what bounds objects is space.
	return &pb.StatfsResponse{TotalBytes: uint64(max(total, 0)), FreeBytes: uint64(free), Objects: objects, FreeObjects: uint64(free) / 512}, nil
}

func (s *Server) siteOf(id ids.Node) ids.Site {
	n, _ := s.directory.Node(id)
	return n.Site
}

// record writes into the audit log that a user ordered something. What cannot
// be recorded is not done.
func (s *Server) record(ctx context.Context, w *identity.Who, action, subject, detail string) error {
	_, err := s.geo.Apply(ctx, geoconfig.Batch{Key: s.batchKey("order"), Audit: []geoconfig.AuditRecord{{
		AtNS: s.deps.Wall().UnixNano(), Who: string(w.User), Action: action, Subject: subject, Detail: detail}}})
	if err != nil {
		return &fault.Error{Kind: fault.KindOf(err), Op: "server.record", Subject: subject, Cause: err,
			Public: "the audit log cannot be written, so this is not done: is geo-config there?"}
	}
	return nil
}
