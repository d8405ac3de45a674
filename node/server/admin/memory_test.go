package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
)

// remembered is a node's copy of the configuration.
type remembered struct {
	rows  geoconfig.Rows
	floor ids.Generation
}

func (r *remembered) Promise(g ids.Generation) error {
	if g < r.floor {
		return fault.E(fault.Conflict, "", "", "less")
	}
	r.floor = g
	return nil
}
func (r *remembered) Floor() ids.Generation { return r.floor }
func (r *remembered) Copy() geoconfig.Rows  { return r.rows }

// answering is a store of a generation; 0: it is away.
type answering ids.Generation

func (g answering) Read(context.Context, geoconfig.Query) (geoconfig.Rows, error) {
	if g == 0 {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "", "", "")
	}
	return geoconfig.Rows{Cluster: &geoconfig.Cluster{ID: "c1", Generation: ids.Generation(g)}}, nil
}

func recall(t *testing.T, m *Memory, req *pb.RecallRequest) rebuild.Copy {
	t.Helper()
	got, err := m.Recall(t.Context(), &identity.Who{Admin: true}, req)
	if err != nil {
		t.Fatal(err)
	}
	var c rebuild.Copy
	if err := json.Unmarshal(got.(*pb.RecallResponse).Copy, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func newMemory(known *remembered, store answering, held ...geoconfig.SliceRow) *Memory {
	return &Memory{Self: "n1", Configuration: known, Store: store, GeoConfig: []string{"/x/p2p/g"}, Logger: slog.New(slog.DiscardHandler),
		Held:    func(context.Context) ([]geoconfig.SliceRow, error) { return held, nil },
		Records: func() ([]geoconfig.Record, error) { return []geoconfig.Record{{Kind: "snapshot", Name: "s"}}, nil }}
}

func TestRecall_TellsTheRowsThatTheNodeActsBy(t *testing.T) {
	known := &remembered{floor: 1, rows: geoconfig.Rows{Users: []geoconfig.User{{Name: "ann"}}, Slices: []geoconfig.SliceRow{{ID: 3, Epoch: 5}, {ID: 7, Epoch: 2}}}}
	m := newMemory(known, 0, geoconfig.SliceRow{ID: 3, Epoch: 4}, geoconfig.SliceRow{ID: 7, Epoch: 9}, geoconfig.SliceRow{ID: 8, Epoch: 1})
	c := recall(t, m, &pb.RecallRequest{})
	want := map[ids.Slice]ids.Epoch{3: 5, 7: 9, 8: 1}
	for _, r := range c.Rows.Slices {
		if want[r.ID] != r.Epoch {
			t.Errorf("slice %d: epoch %d, want %d", r.ID, r.Epoch, want[r.ID])
		}
		delete(want, r.ID)
	}
	if len(want) > 0 || c.Floor != 1 || c.Reaches || len(c.Rows.Users) != 1 || len(c.Rows.Records) != 1 || c.GeoConfig[0] != "/x/p2p/g" {
		t.Errorf("got %+v, without %v", c, want)
	}
}

func TestRecall_AnswersPageByPage(t *testing.T) {
	known := &remembered{rows: geoconfig.Rows{Users: []geoconfig.User{{Name: "ann"}}}}
	const slices = slicesOfAnswer + 5
	for id := range ids.Slice(slices) {
		known.rows.Slices = append(known.rows.Slices, geoconfig.SliceRow{ID: 2*id + 1, Epoch: 1})
	}
	m := newMemory(known, 0)
	first := recall(t, m, &pb.RecallRequest{})
	last := first.Rows.Slices[len(first.Rows.Slices)-1].ID
	second := recall(t, m, &pb.RecallRequest{SlicesFrom: uint32(last) + 1})
	if len(first.Rows.Slices) != slicesOfAnswer || !first.Rows.More || len(second.Rows.Slices) != 5 || second.Rows.More || len(second.Rows.Users) != 0 {
		t.Errorf("got %d and %d slices, more: %v and %v, %d users again", len(first.Rows.Slices), len(second.Rows.Slices), first.Rows.More, second.Rows.More, len(second.Rows.Users))
	}
}

func TestRecall_PromisesBeforeItTells(t *testing.T) {
	known := &remembered{floor: 3}
	m := newMemory(known, 3)
	if c := recall(t, m, &pb.RecallRequest{}); !c.Reaches || known.floor != 3 {
		t.Errorf("without a generation: reaches %v, floor %d", c.Reaches, known.floor)
	}
	if c := recall(t, m, &pb.RecallRequest{Generation: 4}); c.Reaches || c.Floor != 4 {
		t.Errorf("with generation 4: reaches %v, floor %d", c.Reaches, c.Floor)
	}
	if _, err := m.Recall(t.Context(), &identity.Who{Admin: true}, &pb.RecallRequest{Generation: 2}); !fault.Is(err, fault.Conflict) {
		t.Errorf("with generation 2: %v", err)
	}
	if _, err := m.Recall(t.Context(), &identity.Who{Node: true}, &pb.RecallRequest{Generation: 9}); !fault.Is(err, fault.Permission) || known.floor != 4 {
		t.Errorf("for a node: %v, floor %d", err, known.floor)
	}
}
