package allocation

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
)

// fakeRoster has the nodes a1 and a2 at site a, b1 at b, and some slices.
type fakeRoster struct {
	rows []geoconfig.SliceRow
	more []ids.Node // beside those of Nodes
}

func (r *fakeRoster) Nodes() (out []geoconfig.Node) {
	for _, id := range append([]ids.Node{"a1", "a2", "b1"}, r.more...) {
		out = append(out, geoconfig.Node{ID: id, Site: ids.Site(id[:1]), Incarnation: 1})
	}
	return out
}

func (r *fakeRoster) Node(id ids.Node) (geoconfig.Node, bool) {
	nodes := r.Nodes()
	i := slices.IndexFunc(nodes, func(n geoconfig.Node) bool { return n.ID == id })
	if i < 0 {
		return geoconfig.Node{}, false
	}
	return nodes[i], true
}

func (r *fakeRoster) Slices() []geoconfig.SliceRow { return slices.Clone(r.rows) }

func (r *fakeRoster) Slice(id ids.Slice) (geoconfig.SliceRow, bool) {
	i := slices.IndexFunc(r.rows, func(row geoconfig.SliceRow) bool { return row.ID == id })
	if i < 0 {
		return geoconfig.SliceRow{}, false
	}
	return r.rows[i], true
}

// ordinary is a row of a slice with these members, the active first.
func ordinary(id ids.Slice, home ids.Site, members ...ids.Node) geoconfig.SliceRow {
	row := geoconfig.SliceRow{ID: id, Epoch: 1, Active: members[0], Policy: geoconfig.Policy{Home: home, Level: geoconfig.DefaultLevel, Kind: geoconfig.Ordinary}}
	for _, m := range members {
		row.Members = append(row.Members, geoconfig.Member{Node: m, State: geoconfig.Normal})
	}
	return row
}

func newAllocator(r *fakeRoster) *Allocator {
	return New(Options{Self: "a1", Site: "a", Roster: r,
		Sites:      func() []geoconfig.Site { return []geoconfig.Site{{Name: "a"}, {Name: "b"}} },
		Generation: func() ids.Generation { return 1 },
		Connected:  func(ids.Node) bool { return true },
		Distance:   func(ids.Node, ids.Node) (time.Duration, bool) { return 0, false },
		Measure:    func(context.Context, ids.Node, []ids.Node) map[ids.Node]time.Duration { return nil },
		Returns:    func(ids.Slice) bool { return false }, Serves: func(ids.Slice) bool { return true },
		Apply: func(_ context.Context, b geoconfig.Batch) (ids.Revision, error) {
			row := b.Slices[0].Row
			if _, known := r.Slice(row.ID); known {
				return 0, fault.E(fault.Conflict, "test", "", "the row is there")
			}
			r.rows = append(r.rows, row)
			return 5, nil
		},
		Key: func(kind string) string { return kind }, Learn: func(...geoconfig.SliceRow) {},
		ExpectedNodes: 3, MaxNewSlices: 2, LeaderTimeout: time.Second,
		Clock: func() time.Duration { return 0 }, Wall: time.Now, Random: func() uint64 { return 0 }, Logger: slog.New(slog.DiscardHandler)})
}

// place returns the slice that a new object below the root goes to.
func place(t *testing.T, a *Allocator, cues *pb.Cues) (geoconfig.SliceRow, error) {
	t.Helper()
	answer, err := a.Place(t.Context(), &identity.Who{User: "ann"}, &pb.PlaceRequest{Parent: uint64(ids.RootObject), Cues: cues})
	var row geoconfig.SliceRow
	if err == nil {
		err = json.Unmarshal(answer.(*pb.PlaceResponse).Row, &row)
	}
	return row, err
}

func TestMakeRoot_WaitsForTheExpectedNodes(t *testing.T) {
	r := &fakeRoster{}
	a := newAllocator(r)
	a.o.ExpectedNodes = 4
	if a.MakeRoot(t.Context()); len(r.rows) != 0 {
		t.Errorf("got %v before all nodes are there", r.rows)
	}
	a.o.ExpectedNodes, a.o.Connected = 3, func(id ids.Node) bool { return id != "b1" }
	if a.MakeRoot(t.Context()); len(r.rows) != 0 {
		t.Errorf("got %v while a node is not reached", r.rows)
	}
	a.o.Connected = func(ids.Node) bool { return true }
	a.MakeRoot(t.Context())
	if len(r.rows) != 1 || r.rows[0].ID != ids.RootSlice || r.rows[0].Active != "a1" || len(r.rows[0].Members) != 3 {
		t.Errorf("got %+v, want the root slice with three members, led here", r.rows)
	}
}

func TestPlace_PrefersASliceThatIsThere(t *testing.T) {
	r := &fakeRoster{rows: []geoconfig.SliceRow{ordinary(1, "b", "b1", "a1", "a2"), ordinary(2, "a", "a2", "a1", "b1")}}
	a := newAllocator(r)
	if row, err := place(t, a, nil); err != nil || row.ID != 2 {
		t.Errorf("got slice %d (%v), want 2, which is led at this site", row.ID, err)
	}
	r.rows[1].Closed = true
	if row, err := place(t, a, nil); err != nil || row.ID != 3 || row.Active != "a1" || row.Policy.Home != "a" {
		t.Errorf("got %+v (%v) where none is open, want a new slice 3 at home here", row, err)
	}
	if row, err := place(t, a, nil); err != nil || row.ID != 3 {
		t.Errorf("got slice %d (%v) afterwards, want 3 again", row.ID, err)
	}
}

func TestPlace_PrefersTheLeastLoadedNode(t *testing.T) {
	r := &fakeRoster{more: []ids.Node{"b2"}, rows: []geoconfig.SliceRow{ordinary(1, "a", "a1", "b1"), ordinary(2, "b", "b1", "a1", "a2"), ordinary(3, "b", "b2", "a1", "a2")}}
	row, err := place(t, newAllocator(r), &pb.Cues{Site: "b"})
	if err != nil || row.ID != 3 {
		t.Errorf("got slice %d (%v), want 3: its active has less to do", row.ID, err)
	}
}

// TestPlace_KeepsTogetherWhereTheCuesAllow has the directory in slice 1, which is
// at home at b with three replicas.
func TestPlace_KeepsTogetherWhereTheCuesAllow(t *testing.T) {
	for _, c := range []struct {
		what  string
		cues  *pb.Cues
		stays bool
	}{
		{"no other cue", &pb.Cues{KeepTogether: true}, true},
		{"what the slice is", &pb.Cues{KeepTogether: true, Site: "b", RepLevel: 3, RepSites: 2}, true},
		{"any site", &pb.Cues{KeepTogether: true, Site: "random"}, true},
		{"another site", &pb.Cues{KeepTogether: true, Site: "a"}, false},
		{"another number of replicas", &pb.Cues{KeepTogether: true, RepLevel: 1}, false},
		{"another number of sites", &pb.Cues{KeepTogether: true, RepSites: 1}, false},
		{"a time to coherence", &pb.Cues{KeepTogether: true, CoherenceNs: int64(time.Second)}, false},
	} {
		root := ordinary(1, "b", "b1", "a1", "a2")
		root.Policy.Level, root.Policy.Sites = 3, 2
		row, err := place(t, newAllocator(&fakeRoster{rows: []geoconfig.SliceRow{root}}), c.cues)
		if err != nil || (row.ID == root.ID) != c.stays {
			t.Errorf("%s: got slice %d (%v), want the directory's: %v", c.what, row.ID, err, c.stays)
		}
		if site := c.cues.Site; !c.stays && site != "" && row.Policy.Home != ids.Site(site) {
			t.Errorf("%s: the slice is at home at %s", c.what, row.Policy.Home)
		}
	}
}

// TestPlace_MeasuresBeforeItMakesASlice has two sites for one standby. The one that
// is predicted nearer is not.
func TestPlace_MeasuresBeforeItMakesASlice(t *testing.T) {
	r := &fakeRoster{}
	a := newAllocator(r)
	const ms = time.Millisecond
	a.o.Distance = func(_, b ids.Node) (time.Duration, bool) {
		return map[ids.Node]time.Duration{"a2": 20 * ms, "b1": 40 * ms}[b], true
	}
	a.o.Measure = func(_ context.Context, from ids.Node, to []ids.Node) map[ids.Node]time.Duration {
		if from != "a1" || !slices.Equal(to, []ids.Node{"b1", "a2"}) {
			t.Errorf("measured from %s to %v, want from a1 to b1 and a2", from, to)
		}
		return map[ids.Node]time.Duration{"a2": 21 * ms, "b1": 0}
	}
	row, err := place(t, a, &pb.Cues{RepLevel: 2})
	if err != nil || len(row.Members) != 2 || row.Members[0].Node != "a1" || row.Members[1].Node != "a2" {
		t.Errorf("got %+v (%v), want a1 and a2: b1 is elsewhere, but does not answer", row.Members, err)
	}
}

func TestPlace_TakesASliceThatReturns(t *testing.T) {
	r := &fakeRoster{rows: []geoconfig.SliceRow{ordinary(2, "a", "b1", "a1", "a2")}}
	a := newAllocator(r)
	a.o.Returns = func(id ids.Slice) bool { return id == 2 }
	if row, err := place(t, a, nil); err != nil || row.ID != 2 {
		t.Errorf("got slice %d (%v), want 2, which is about to return", row.ID, err)
	}
}

func TestPlace_RefusesASiteThatIsNotThere(t *testing.T) {
	a := newAllocator(&fakeRoster{})
	if _, err := place(t, a, &pb.Cues{Site: "c"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}

func TestQuota_LimitsNewSlicesOfOneUser(t *testing.T) {
	var q quota
	for _, step := range []struct {
		user    ids.User
		at      time.Duration
		refused bool
	}{
		{"ann", 0, false}, {"ann", time.Minute, false}, {"ann", 59 * time.Minute, true},
		{"bob", 59 * time.Minute, false}, {"ann", time.Hour, false}, {"ann", time.Hour, true},
	} {
		if err := q.take(step.user, 2, step.at); fault.Is(err, fault.Quota) != step.refused {
			t.Errorf("%s at %v: got %v, want refused %v", step.user, step.at, err, step.refused)
		}
	}
}
