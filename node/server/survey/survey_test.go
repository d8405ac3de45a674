package survey

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/proximity"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// fakeRoster are the nodes of a cluster, in the order of their IDs.
type fakeRoster []geoconfig.Node

func (r fakeRoster) Nodes() []geoconfig.Node { return slices.Clone(r) }

func (r fakeRoster) Node(id ids.Node) (geoconfig.Node, bool) {
	i := slices.IndexFunc(r, func(n geoconfig.Node) bool { return n.ID == id })
	if i < 0 {
		return geoconfig.Node{}, false
	}
	return r[i], true
}

// fakeHost answers every ping after a millisecond, but from the node "gone".
type fakeHost struct{}

func (fakeHost) SetCoordinate(wire.Coordinate) {}

func (fakeHost) Path(peer string) (wire.Path, bool) { return wire.Path{Via: "c"}, peer == "b" }

func (fakeHost) Ping(_ context.Context, peer string) (time.Duration, error) {
	if peer == "gone" {
		return 0, fault.E(fault.Unreachable, "test", peer, "it is gone")
	}
	return time.Millisecond, nil
}

func (fakeHost) Call(_ context.Context, peer string, _ wire.Class, _ wire.Method, _ proto.Message, _ [][]byte, _ proto.Message) (*wire.Buffer, error) {
	return nil, fault.E(fault.Unreachable, "test", peer, "nobody is called")
}

// writer keeps what was written to the configuration, and counts refreshes.
type writer struct {
	mu        sync.Mutex // guards below
	audit     []geoconfig.AuditRecord
	refreshes int
}

func newSurveyor(t *testing.T, roster fakeRoster, w *writer) *Surveyor {
	t.Helper()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) + time.Second }
	vicinity, err := proximity.New(clock, rand.NewPCG(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	vicinity.Here("x")
	return New(Options{Self: "a", Site: "x", Vicinity: vicinity, Roster: roster, Host: fakeHost{}, Spread: 10 * time.Millisecond,
		Apply: func(_ context.Context, b geoconfig.Batch) (ids.Revision, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.audit = append(w.audit, b.Audit...)
			return 1, nil
		},
		Refresh: func(context.Context) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refreshes++
		},
		Key: func(kind string) string { return kind }, Clock: clock, Wall: time.Now, Logger: slog.New(slog.DiscardHandler)})
}

func TestRun_RecordsWhoIsTooNearAndThenNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{}
		s := newSurveyor(t, fakeRoster{{ID: "a", Site: "x"}, {ID: "b", Site: "y"}, {ID: "c", Site: "x"}}, w)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		sample := func(b, c time.Duration) {
			for range 10 {
				s.Sample("b", b, nil)
				s.Sample("c", c, nil)
				time.Sleep(time.Second)
			}
			synctest.Wait()
		}
		sample(300*time.Microsecond, 50*time.Millisecond)
		var row geoconfig.Node
		s.FillRow(&row)
		if !slices.Equal(row.Together, []ids.Node{"b"}) || !slices.Equal(row.Apart, []ids.Node{"c"}) || len(s.Findings()) != 2 {
			t.Errorf("got together %v and apart %v, want b and c", row.Together, row.Apart)
		}
		w.mu.Lock()
		actions := []string{}
		for _, a := range w.audit {
			actions = append(actions, a.Action)
		}
		if !slices.Equal(actions, []string{"site.astray", "site.astray"}) || w.refreshes == 0 {
			t.Errorf("got records %v and %d refreshes, want two nodes astray in a new row", actions, w.refreshes)
		}
		w.mu.Unlock()
		for range 130 { // until the least of the old samples is forgotten
			sample(30*time.Millisecond, 300*time.Microsecond)
		}
		s.FillRow(&row)
		if len(row.Together)+len(row.Apart) != 0 {
			t.Errorf("got together %v and apart %v after they moved, want none", row.Together, row.Apart)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if last := w.audit[len(w.audit)-1]; last.Action != "site.aright" {
			t.Errorf("the last record is %+v, want site.aright", last)
		}
	})
}

func TestRelays_NamesTheShortestWayFirst(t *testing.T) {
	s := newSurveyor(t, fakeRoster{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}, &writer{})
	place := func(id ids.Node, x float64) {
		s.o.Vicinity.Place(id, geoconfig.Coordinate{Vector: []float64{x, 0, 0}, Height: 1, Error: 0.1})
	}
	place("c", 10)
	place("d", 40)
	place("e", 50)
	s.Sample("c", 10*time.Millisecond, nil)
	s.Sample("d", 400*time.Millisecond, nil)
	if got, want := s.Relays("e"), []string{"c", "d", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: b is of an unknown distance", got, want)
	}
	if _, known := s.Distance("b", "c"); known {
		t.Error("the distance of a node without a coordinate is known")
	}
	if d, known := s.Distance("c", "a"); !known || d != 10*time.Millisecond {
		t.Errorf("got %v (%v) for a measured node, want 10ms", d, known)
	}
}

func TestNet_MeasuresTheNodesAskedFor(t *testing.T) {
	s := newSurveyor(t, fakeRoster{{ID: "a", Site: "x"}, {ID: "b", Site: "y"}, {ID: "c", Site: "x"}, {ID: "gone", Site: "z"}}, &writer{})
	ask := func(req *pb.NetRequest) (out status.Net) {
		t.Helper()
		answer, err := s.Net(t.Context(), &identity.Who{User: "root", Client: 1, Admin: true}, req)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer.(*pb.NetResponse).Net, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := ask(&pb.NetRequest{Nodes: []string{"b", "gone"}, Probes: 100})
	if len(out.Links) != 2 || len(out.Links[0].ProbeNS) != maxProbes || out.Links[0].Path != "via c" || out.Links[0].Error != "" {
		t.Errorf("got %+v, want b and gone, and %d measurements of b", out.Links, maxProbes)
	}
	if len(out.Links) == 2 && (out.Links[1].Error == "" || len(out.Links[1].ProbeNS) != 0) {
		t.Errorf("got %+v for a node that is gone, want its error", out.Links[1])
	}
	if out := ask(&pb.NetRequest{}); len(out.Links) != 3 || len(out.Links[0].ProbeNS) != 0 {
		t.Errorf("got %+v, want the three others, not measured", out.Links)
	}
}
