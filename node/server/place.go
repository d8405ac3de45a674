package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// place says which slice a new object goes to (docs/design.md, 4.11), and makes
// a slice where none fits. One that is about to come home fits: whatever is made
// in another beside it would pay for two slices as long as it lives.
func (s *Server) place(ctx context.Context, w *identity.Who, req *pb.PlaceRequest) (proto.Message, error) {
	const op fault.Op = "server.Place"
	if err := cue.Check(req.Cues); err != nil {
		return nil, err
	}
	parent := ids.Object(req.Parent)
	if req.Cues.GetKeepTogether() {
		if row, ok := s.directory.Slice(parent.Slice()); ok && !row.Closed {
			return placed(row)
		}
	}
	policy, err := s.policy(req.Cues)
	if err != nil {
		return nil, err
	}
	if row, ok := s.open(parent, policy); ok {
		return placed(row)
	}
	// Making a slice asks geo-config and waits for the slice's active.
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	end, err := s.beginPlacing(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if row, ok := s.open(parent, policy); ok {
		return placed(row)
	}
	if err := s.opened.take(w.User, s.config.MaxNewSlices, s.clock()); err != nil {
		return nil, err
	}
	row, err := s.newSlice(ctx, policy, s.directory.Slices())
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, op, string(policy.Home), err)
	}
	return placed(row)
}

// beginPlacing waits for the turn to choose or make a slice: one is made where
// many ask at once.
func (s *Server) beginPlacing(ctx context.Context) (end func(), err error) {
	select {
	case s.placing <- struct{}{}:
		return func() { <-s.placing }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.TimedOut, "server.Place", "", ctx.Err())
	}
}

// open finds a slice that takes new objects of a policy.
func (s *Server) open(parent ids.Object, policy geoconfig.Policy) (geoconfig.SliceRow, bool) {
	rows := s.directory.Slices()
	if row, ok := s.directory.Slice(parent.Slice()); ok && (s.fits(row, policy) || s.comesHome(row, policy)) {
		return row, true
	}
	for _, node := range s.nearest(policy.Home) {
		if id, ok := placement.Open(rows, policy, node); ok {
			return s.directory.Slice(id)
		}
	}
	for _, row := range rows {
		if s.comesHome(row, policy) {
			return row, true
		}
	}
	return geoconfig.SliceRow{}, false
}

// comesHome reports whether new objects of a policy may go to a slice that is
// led elsewhere: it is on its way home, where a member of it answers.
func (s *Server) comesHome(row geoconfig.SliceRow, p geoconfig.Policy) bool {
	if _, open := placement.Open([]geoconfig.SliceRow{row}, p, row.Active); !open || !s.strays.Returns(row.ID, s.clock()) {
		return false
	}
	return slices.ContainsFunc(s.nearest(p.Home), func(n ids.Node) bool { _, in := row.Member(n); return in })
}

// opened counts the slices that were made for users, so that one user with
// many policies leaves the others room in the slice table.
type opened struct {
	mu sync.Mutex // guards by
	by map[ids.User][]time.Duration
}

// openedWithin is the time in which one user may have Config.MaxNewSlices made.
const openedWithin = time.Hour

// take counts a slice for a user, or answers Quota.
func (o *opened) take(user ids.User, most int, now time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	recent := slices.DeleteFunc(o.by[user], func(at time.Duration) bool { return now-at >= openedWithin })
	if len(recent) >= most {
		return fault.Errorf(fault.Quota, "server.Place", string(user), "%d slices were made for this user within an hour: use fewer different cues, or try later", len(recent))
	}
	if o.by == nil {
		o.by = map[ids.User][]time.Duration{}
	}
	o.by[user] = append(recent, now)
	return nil
}

func placed(row geoconfig.SliceRow) (proto.Message, error) {
	encoded, err := json.Marshal(row)
	return &pb.PlaceResponse{Slice: uint32(row.ID), Row: encoded}, fault.Wrap(fault.Corrupt, "server.Place", "", err)
}

// policy turns cues that were checked into a policy; without a site the slice is
// at home here.
func (s *Server) policy(cues *pb.Cues) (geoconfig.Policy, error) {
	const op fault.Op = "server.Place"
	sites := s.directory.Sites()
	home := ids.Site(s.config.Site)
	p := cue.Policy(cues, home)
	if p.Home == "random" && len(sites) > 0 {
		p.Home = sites[s.chance.Uint64()%uint64(len(sites))].Name
	}
	known := false
	for _, x := range sites {
		known = known || x.Name == p.Home
	}
	if !known {
		return p, fault.E(fault.Invalid, op, string(p.Home), "there is no such site")
	}
	if p.Sites > len(sites) {
		return p, fault.Errorf(fault.Invalid, op, "", "there are only %d sites", len(sites))
	}
	return p, nil
}

// fits reports whether the parent's slice will do: its policy is the same and
// its active is this node or at the home site.
func (s *Server) fits(row geoconfig.SliceRow, p geoconfig.Policy) bool {
	_, open := placement.Open([]geoconfig.SliceRow{row}, p, row.Active)
	if !open {
		return false
	}
	return row.Active == s.id || s.siteOf(row.Active) == p.Home && p.Home != ids.Site(s.config.Site)
}

func (s *Server) siteOf(id ids.Node) ids.Site {
	n, _ := s.directory.Node(id)
	return n.Site
}

// nearest lists the nodes at a site, this one first, then the least loaded.
func (s *Server) nearest(site ids.Site) []ids.Node {
	var out []ids.Node
	if site == ids.Site(s.config.Site) {
		out = append(out, s.id)
	}
	for _, c := range s.candidates() {
		if c.Site == site && !c.Away && c.Node != s.id {
			out = append(out, c.Node)
		}
	}
	return out
}

// newSlice makes a slice with the next free ID and waits until it is led.
func (s *Server) newSlice(ctx context.Context, policy geoconfig.Policy, rows []geoconfig.SliceRow) (geoconfig.SliceRow, error) {
	next := ids.RootSlice + 1
	for _, r := range rows {
		next = max(next, r.ID+1)
	}
	for ; next <= ids.MaxSlice; next++ {
		row, err := s.makeSlice(ctx, next, policy, s.candidates())
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			return row, err
		}
		s.log.Info("made a slice", "slice", uint32(row.ID), "home", policy.Home, "level", policy.Level)
		return row, s.awaitLeader(ctx, row)
	}
	return geoconfig.SliceRow{}, fault.E(fault.NoSpace, "server.newSlice", "", "no slice ID is left")
}

// awaitLeader waits a moment for the new active, so that the caller's first
// operation finds it ready; it tries again by itself if not.
func (s *Server) awaitLeader(ctx context.Context, row geoconfig.SliceRow) error {
	if row.Active != s.id {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, s.config.Lease)
	defer cancel()
	for !s.loop.Published(row.ID).Serves(s.clock()) {
		select {
		case <-limit.Done():
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
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
