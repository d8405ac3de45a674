package allocation

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/wire"
)

// Place says which slice a new object goes to (docs/design.md, 4.11), and makes
// a slice where none fits. One that is about to come home fits: whatever is made
// in another beside it would pay for two slices as long as it lives. Errors: Invalid for a
// policy that cannot be, Quota where too many slices were made for the user.
func (a *Allocator) Place(ctx context.Context, w *identity.Who, req *pb.PlaceRequest) (proto.Message, error) {
	const op fault.Op = "allocation.Place"
	if err := cue.Check(req.Cues); err != nil {
		return nil, err
	}
	parent := ids.Object(req.Parent)
	if req.Cues.GetKeepTogether() {
		if row, ok := a.o.Roster.Slice(parent.Slice()); ok && !row.Closed && agrees(row.Policy, req.Cues) {
			return placed(row)
		}
	}
	policy, err := a.policy(req.Cues)
	if err != nil {
		return nil, err
	}
	if row, ok := a.open(parent, policy); ok {
		return placed(row)
	}
	// Making a slice asks geo-config and waits for the slice's active.
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	end, err := a.beginPlacing(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if row, ok := a.open(parent, policy); ok {
		return placed(row)
	}
	if err := a.made.take(w.User, a.o.MaxNewSlices, a.o.Clock()); err != nil {
		return nil, err
	}
	row, err := a.newSlice(ctx, policy, a.o.Roster.Slices())
	if err != nil {
		return nil, fault.Wrap(fault.Unreachable, op, string(policy.Home), err)
	}
	return placed(row)
}

// agrees reports whether a slice of a policy is what the cues name: the site, the
// number of replicas and that of their sites. Any will do where they name none. The
// time to coherence must be the same: without one, no content may lag.
func agrees(p geoconfig.Policy, c *pb.Cues) bool {
	site, level, sites := c.GetSite(), int(c.GetRepLevel()), int(c.GetRepSites())
	return p.Coherence == time.Duration(c.GetCoherenceNs()) && (site == "" || site == randomSite || ids.Site(site) == p.Home) && (level == 0 || level == p.Level) && (sites == 0 || min(sites, p.Level) == p.Sites)
}

// beginPlacing waits for the turn to choose or make a slice: one is made where
// many ask at once.
func (a *Allocator) beginPlacing(ctx context.Context) (end func(), err error) {
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(fault.TimedOut, "allocation.beginPlacing", "", ctx.Err())
	}
}

// open finds a slice that takes new objects of a policy.
func (a *Allocator) open(parent ids.Object, policy geoconfig.Policy) (geoconfig.SliceRow, bool) {
	rows := a.o.Roster.Slices()
	if row, ok := a.o.Roster.Slice(parent.Slice()); ok && (a.fits(row, policy) || a.returns(row, policy)) {
		return row, true
	}
	for _, node := range a.nearest(policy.Home) {
		if id, ok := placement.Open(rows, policy, node); ok {
			return a.o.Roster.Slice(id)
		}
	}
	for _, row := range rows {
		if a.returns(row, policy) {
			return row, true
		}
	}
	return geoconfig.SliceRow{}, false
}

// returns reports whether new objects of a policy may go to a slice that is
// led elsewhere: it is about to return to its home, where a member of it answers.
func (a *Allocator) returns(row geoconfig.SliceRow, p geoconfig.Policy) bool {
	if _, open := placement.Open([]geoconfig.SliceRow{row}, p, row.Active); !open || !a.o.Returns(row.ID) {
		return false
	}
	return slices.ContainsFunc(a.nearest(p.Home), func(n ids.Node) bool { _, in := row.Member(n); return in })
}

func placed(row geoconfig.SliceRow) (proto.Message, error) {
	encoded, err := json.Marshal(row)
	return &pb.PlaceResponse{Slice: uint32(row.ID), Row: encoded}, fault.Wrap(fault.Corrupt, "allocation.placed", "", err)
}

// randomSite is the value of the cue for any one site.
const randomSite = "random"

// policy turns cues that were checked into a policy; without a site the slice is
// at home here.
func (a *Allocator) policy(cues *pb.Cues) (geoconfig.Policy, error) {
	const op fault.Op = "allocation.policy"
	sites := a.o.Sites()
	home := a.o.Site
	p := cue.Policy(cues, home)
	if p.Home == randomSite && len(sites) > 0 {
		p.Home = sites[a.o.Random()%uint64(len(sites))].Name
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
func (a *Allocator) fits(row geoconfig.SliceRow, p geoconfig.Policy) bool {
	_, open := placement.Open([]geoconfig.SliceRow{row}, p, row.Active)
	if !open {
		return false
	}
	return row.Active == a.o.Self || a.siteOf(row.Active) == p.Home && p.Home != a.o.Site
}

// nearest lists the nodes at a site, this one first, then the least loaded.
func (a *Allocator) nearest(site ids.Site) []ids.Node {
	var out []ids.Node
	if site == a.o.Site {
		out = append(out, a.o.Self)
	}
	candidates := a.Candidates()
	slices.SortFunc(candidates, placement.Compare)
	for _, c := range candidates {
		if c.Site == site && !c.Away && !c.Leaving && c.Node != a.o.Self {
			out = append(out, c.Node)
		}
	}
	return out
}

func (a *Allocator) siteOf(id ids.Node) ids.Site {
	n, _ := a.o.Roster.Node(id)
	return n.Site
}
