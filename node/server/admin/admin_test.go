package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/tree"
)

var chief = &identity.Who{User: "chief", Admin: true}

// office is a node with one slice, which hands over at once.
type office struct {
	row   geoconfig.SliceRow
	kind  fault.Kind // of hand-overs
	audit error
	done  []string // in order
}

func (o *office) orders() *Orders {
	return &Orders{
		Self:    "a",
		Row:     func(id ids.Slice) (geoconfig.SliceRow, bool) { return o.row, id == o.row.ID },
		Changed: func() <-chan struct{} { return nil },
		Pass: func(_ context.Context, _ ids.Slice, to ids.Node) (fault.Kind, error) {
			o.done = append(o.done, "hand over to "+string(to))
			if o.kind == fault.None {
				o.row.Active = to
			}
			return o.kind, nil
		},
		Drop: func() { o.done = append(o.done, "drop") },
		Scrub: func(rate int64) uint64 {
			o.done = append(o.done, fmt.Sprint("scrub at ", rate))
			return 7
		},
		Apply: func(_ context.Context, b geoconfig.Batch) (ids.Revision, error) {
			o.done = append(o.done, "record "+b.Audit[0].Action+" by "+b.Audit[0].Who)
			return 1, o.audit
		},
		Key:  func(kind string) string { return kind },
		Wall: func() time.Time { return time.Unix(1, 0) },
	}
}

func TestHandOver_TakesAnyMemberThatIsUpToDate(t *testing.T) {
	o := &office{row: geoconfig.SliceRow{ID: 1, Active: "a", Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal},
		{Node: "b", State: geoconfig.Failed}, {Node: "c", State: geoconfig.Normal}}}}
	if _, err := o.orders().HandOver(t.Context(), chief, &pb.HandOverRequest{Slice: 1}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"record slice.hand-over by chief", "hand over to c"}; !slices.Equal(o.done, want) {
		t.Errorf("got %q, want %q", o.done, want)
	}
}

func TestHandOver_SaysWhyItCannot(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Active: "a"}
	for _, c := range []struct {
		name string
		o    office
		who  *identity.Who
		req  *pb.HandOverRequest
		want fault.Kind
	}{
		{"ordered by a user", office{row: row}, &identity.Who{User: "ann"}, &pb.HandOverRequest{Slice: 1, To: "b"}, fault.Permission},
		{"of a slice that is not known", office{row: row}, chief, &pb.HandOverRequest{Slice: 2, To: "b"}, fault.NotFound},
		{"without a member to take it", office{row: row}, chief, &pb.HandOverRequest{Slice: 1}, fault.NotFound},
		{"refused by the core", office{row: row, kind: fault.NotActive}, chief, &pb.HandOverRequest{Slice: 1, To: "b"}, fault.NotActive},
	} {
		if _, err := c.o.orders().HandOver(t.Context(), c.who, c.req); fault.KindOf(err) != c.want {
			t.Errorf("a hand-over %s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestRecord_ComesBeforeWhatIsOrdered(t *testing.T) {
	o := &office{audit: fault.E(fault.Unreachable, "", "", "")}
	if _, err := o.orders().DropCaches(t.Context(), chief, nil); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v without an audit log, want unreachable", err)
	}
	o.audit = nil
	if _, err := o.orders().DropCaches(t.Context(), chief, nil); err != nil {
		t.Error(err)
	}
	if want := []string{"record node.drop-caches by chief", "record node.drop-caches by chief", "drop"}; !slices.Equal(o.done, want) {
		t.Errorf("got %q, want %q", o.done, want)
	}
}

func TestStartScrub_IsForAdministratorsAndNodes(t *testing.T) {
	o := &office{}
	for name, x := range map[string]struct {
		who  identity.Who
		want fault.Kind
	}{
		"a user":           {identity.Who{User: "ann"}, fault.Permission},
		"a trusted host":   {identity.Who{User: "host", Trusted: true}, fault.Permission},
		"a node":           {identity.Who{User: "node", Node: true}, fault.None},
		"an administrator": {*chief, fault.None},
	} {
		o.done = nil
		a, err := o.orders().StartScrub(t.Context(), &x.who, &pb.ScrubRequest{RateBytes: 9})
		if fault.KindOf(err) != x.want {
			t.Errorf("%s: got %v, want %v", name, err, x.want)
		}
		if x.want == fault.None && (a.(*pb.ScrubResponse).Round != 7 || !slices.Equal(o.done, []string{"record node.scrub by " + string(x.who.User), "scrub at 9"})) {
			t.Errorf("%s: %v, %q", name, a, o.done)
		}
	}
	if _, err := o.orders().StartScrub(t.Context(), chief, &pb.ScrubRequest{RateBytes: 1 << 63}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a rate beyond all bounds: %v", err)
	}
}

// fakeRoster knows where nodes stand.
type fakeRoster struct{ Roster }

func (fakeRoster) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{ID: id, Site: "at-" + ids.Site(id)}, true
}

// fakeLoop has a copy of each slice, for which the node acts until time 10.
type fakeLoop struct{ Loop }

func (fakeLoop) Published(id ids.Slice) *operate.Published {
	p := operate.NewPublished(id, replica.RoleLeading, nil, 10)
	p.Applied.Store(7)
	return p
}

// emptyView is a slice's copy without anything in it.
type emptyView struct{}

func (emptyView) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

func (emptyView) Scan(_, _ []byte, _ func(key, value []byte) bool) error { return nil }

func TestSlice_TellsWhatASliceLacks(t *testing.T) {
	now := time.Duration(9)
	s := NewReports(ReportsOptions{Self: "a", Loop: fakeLoop{}, Roster: fakeRoster{}, Clock: func() time.Duration { return now },
		Committed: func(ids.Slice) tree.View { return emptyView{} }})
	row := geoconfig.SliceRow{ID: 1, Active: "b", Policy: geoconfig.Policy{Level: 2},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Failed}, {Node: "b", State: geoconfig.Normal}}}
	got := s.slice(row, replica.Status{}, false)
	want := []status.Member{{Node: "b", Site: "at-b", State: geoconfig.Normal.String(), Active: true}, {Node: "a", Site: "at-a", State: geoconfig.Failed.String()}}
	if !slices.Equal(got.Members, want) {
		t.Errorf("got members %v, want the active first: %v", got.Members, want)
	}
	if got.Role != "none" || !got.Serving || got.Why != "" || got.Applied != 7 || got.Protected || got.Lacks != "1 of 2 replicas are up to date" {
		t.Errorf("got %+v", got)
	}
	now, row.Members[0].State = 10, geoconfig.Normal
	if got := s.slice(row, replica.Status{}, false); got.Serving || got.Why == "" || !got.Protected || got.Lacks != "" {
		t.Errorf("with all members, after the lease: got %+v", got)
	}
}

// quiet is a node that has nothing to tell but its clients.
type quiet struct {
	Store
	Space
	Host
}

func (quiet) Usage() store.Usage           { return store.Usage{} }
func (quiet) Incarnation() ids.Incarnation { return 1 }
func (quiet) Capacity(store.Usage) int64   { return 0 }
func (quiet) IsFull() bool                 { return false }
func (quiet) Addresses() []string          { return nil }
func (fakeRoster) Nodes() []geoconfig.Node { return nil }

func (fakeLoop) EachPublished(func(*operate.Published) bool) {}

func TestStatus_ShowsClientsOnlyToThoseWhoMay(t *testing.T) {
	s := NewReports(ReportsOptions{Self: "a", Loop: fakeLoop{}, Roster: fakeRoster{}, Store: quiet{}, Space: quiet{}, Host: quiet{},
		Cluster: func() ids.Cluster { return "c" }, Standing: Standing{Away: func() time.Time { return time.Unix(1, 0) }, Refused: func() error { return nil }, Generation: func() ids.Generation { return 1 }}, Clock: func() time.Duration { return 1 },
		Sessions: func() (int, int) { return 0, 0 }, Findings: func() []status.Finding { return nil },
		Balance: func() status.Balance { return status.Balance{} }, Copies: func() []status.Copy { return nil },
		Drill: func() *status.Drill { return nil }, Moved: func() int64 { return 0 },
		Scrub: func(lost int) status.Scrub {
			return status.Scrub{LostChunks: 2000, Lost: make([]status.LostChunk, min(lost, 2000))}
		},
		Clients: func(limit int) []identity.Who {
			return []identity.Who{{User: "ann", Name: "laptop"}, {User: "bob"}}[:min(limit, 2)]
		}})
	for name, c := range map[string]struct {
		who  identity.Who
		asks uint32
		want int
	}{
		"a user":                        {identity.Who{User: "ann"}, 10, 0},
		"a trusted host":                {identity.Who{User: "host", Trusted: true}, 10, 0},
		"an administrator":              {*chief, 10, 2},
		"a node":                        {identity.Who{User: "node", Trusted: true, Node: true}, 1, 1},
		"a node that asks for no names": {identity.Who{User: "node", Trusted: true, Node: true}, 0, 0},
	} {
		answer, err := s.Status(t.Context(), &c.who, &pb.StatusRequest{Clients: c.asks})
		if err != nil {
			t.Fatal(err)
		}
		var out status.Node
		if err := json.Unmarshal(answer.(*pb.StatusResponse).Status, &out); err != nil || len(out.Clients) != c.want {
			t.Errorf("%s: got %+v, %v, want %d", name, out.Clients, err, c.want)
		}
		if lost := len(out.Scrub.Lost); out.Scrub.LostChunks != 2000 || lost != 0 && (name == "a user" || lost != maxLost) || lost == 0 && name != "a user" {
			t.Errorf("%s: %d lost chunks are listed", name, lost)
		}
		if shown := out.Disk != nil; shown != (name != "a user") {
			t.Errorf("%s: what holds the disk is shown: %v", name, shown)
		}
	}
}

func TestDiskOf_BoundsWhatIsLiveAndRetained(t *testing.T) {
	u := store.Usage{Journal: 1, Meta: 2, Chunks: 1000, Waiting: 100, Packs: 1300}
	for name, c := range map[string]struct{ stored, live, retained int64 }{
		"some is retained":               {600, 600, 300},
		"files share more than retained": {2000, 900, 0},
		"nothing is live":                {0, 0, 900},
	} {
		want := status.Disk{JournalBytes: 1, MetadataBytes: 2, ChunkBytes: 1000, LiveBytes: c.live, RetainedBytes: c.retained, EmptyBytes: 300}
		if got := diskOf(u, c.stored); *got != want {
			t.Errorf("%s: got %+v, want %+v", name, *got, want)
		}
	}
	if got := diskOf(store.Usage{Chunks: 10, Packs: 5}, 0); got.EmptyBytes != 0 {
		t.Errorf("a pack that is measured later: %d bytes are empty", got.EmptyBytes)
	}
}

func TestSlice_IsWholeOnTheRowsDiskAlone(t *testing.T) {
	s := NewReports(ReportsOptions{Self: "a", Loop: fakeLoop{}, Roster: fakeRoster{}, Store: quiet{}, Clock: func() time.Duration { return 9 },
		Committed: func(ids.Slice) tree.View { return emptyView{} }})
	for name, c := range map[string]struct {
		member      ids.Node
		incarnation ids.Incarnation
		whole, want bool
	}{
		"a member":              {"a", 1, true, true},
		"an unfinished copy":    {"a", 1, false, false},
		"a disk that was wiped": {"a", 2, true, false},
		"a member no more":      {"b", 1, true, false},
	} {
		row := geoconfig.SliceRow{ID: 1, Active: "b", Members: []geoconfig.Member{{Node: c.member, State: geoconfig.Failed, Incarnation: c.incarnation}}}
		if got := s.slice(row, replica.Status{Whole: c.whole, Lacking: 3}, true); got.Whole != c.want || got.Lacking != 3 {
			t.Errorf("%s: whole %v, lacking %d, want %v and 3", name, got.Whole, got.Lacking, c.want)
		}
	}
}
