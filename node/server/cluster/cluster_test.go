package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/protocol/pb"
)

// absent is a store that may be away.
type absent struct {
	geoconfig.Store
	away *atomic.Bool
}

func (s absent) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if s.away.Load() {
		return geoconfig.Rows{}, fault.E(fault.Unreachable, "", "", "")
	}
	return s.Store.Read(ctx, q)
}

// newStore has a cluster with a site, a node, a user and a slice.
func newStore(t *testing.T) absent {
	t.Helper()
	store := inmem.New()
	apply(t, store, geoconfig.Batch{Key: "begin", Cluster: &geoconfig.Cluster{ID: "x", Generation: 1}, Sites: []geoconfig.Site{{Name: "here"}},
		Nodes: []geoconfig.Node{{ID: "a", Site: "here", Incarnation: 1}}, Users: []geoconfig.User{{Name: "ann", Key: "key", UID: 1000, GIDs: []uint32{1000}}}})
	apply(t, store, geoconfig.Batch{Key: "slice", Slices: []geoconfig.SliceSwap{{Row: sliceRow(1)}}})
	return absent{store, &atomic.Bool{}}
}

func apply(t *testing.T, s geoconfig.Store, b geoconfig.Batch) ids.Revision {
	t.Helper()
	rev, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func sliceRow(epoch ids.Epoch) geoconfig.SliceRow {
	return geoconfig.SliceRow{ID: 1, Epoch: epoch, Active: "a", Generation: 1, Policy: geoconfig.Policy{Home: "here", Level: 1, Kind: geoconfig.Ordinary},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal, Incarnation: 1}}}
}

func open(t *testing.T, o Options) *Directory {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRefresh_ReadsAllAndTellsOfIt(t *testing.T) {
	var heard []string
	d := open(t, Options{Store: newStore(t),
		Slices: func([]geoconfig.SliceRow) { heard = append(heard, "slices") },
		Nodes:  func() { heard = append(heard, "nodes") },
		Users:  func() { heard = append(heard, "users") }})
	changed := d.Changed()
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("the channel of changes is open after one")
	}
	if want := []string{"slices", "nodes", "users"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	_, node := d.Node("a")
	user, known := d.User("key")
	if row, ok := d.Slice(1); !ok || row.Active != "a" || !node || !known || user.Name != "ann" || len(d.Sites()) != 1 || d.Cluster().ID != "x" {
		t.Errorf("got slice %+v, user %+v, sites %v, cluster %+v", row, user, d.Sites(), d.Cluster())
	}
}

func TestRefresh_DropsWhatWasRemoved(t *testing.T) {
	store := newStore(t)
	d := open(t, Options{Store: store})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	user, _ := d.User("key")
	apply(t, store, geoconfig.Batch{Key: "remove", Remove: []geoconfig.Removal{{Key: user.RowKey(), Revision: user.Revision}}})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.User("key"); ok {
		t.Error("a user that was removed is still there")
	}
}

func TestDirectory_GoesOnWithoutTheStore(t *testing.T) {
	store, file := newStore(t), filepath.Join(t.TempDir(), "configuration.json")
	if err := open(t, Options{Store: store, File: file}).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.away.Store(true)
	d := open(t, Options{Store: store, File: file}) // another life
	if err := d.Refresh(t.Context()); !fault.Is(err, fault.Unreachable) || d.Away().IsZero() {
		t.Errorf("got %v, away since %v, want unreachable and a time", err, d.Away())
	}
	if row, ok := d.Slice(1); !ok || row.Epoch != 1 || d.Cluster().ID != "x" || d.Revision() == 0 {
		t.Errorf("got slice %+v of cluster %q at revision %d, want what the former life saw", row, d.Cluster().ID, d.Revision())
	}
	store.away.Store(false)
	if err := d.Refresh(t.Context()); err != nil || !d.Away().IsZero() {
		t.Errorf("got %v, away since %v once the store is back", err, d.Away())
	}
}

func TestLearn_TellsOfNewerEpochsAlone(t *testing.T) {
	var heard []ids.Epoch
	d := open(t, Options{Store: newStore(t), Slices: func(rows []geoconfig.SliceRow) {
		for _, r := range rows {
			heard = append(heard, r.Epoch)
		}
	}})
	for _, epoch := range []ids.Epoch{2, 1, 2, 4, 3} {
		d.Learn(sliceRow(epoch))
	}
	if row, _ := d.Slice(1); row.Epoch != 4 || !slices.Equal(heard, []ids.Epoch{2, 4}) {
		t.Errorf("got epoch %d, heard of %v, want 4, and of 2 and 4", row.Epoch, heard)
	}
	row := sliceRow(4)
	row.Revision, row.Closed = 9, true
	d.Learn(row)
	if row, _ := d.Slice(1); !row.Closed || len(heard) != 2 {
		t.Errorf("got %+v, heard of %v, want the newer revision kept, and not told", row, heard)
	}
	row, _ = d.Slice(1)
	row.Members[0].Node = "z"
	if row, _ := d.Slice(1); row.Members[0].Node != "a" {
		t.Error("a caller's change of a row is seen by others")
	}
}

func TestRows_AnswersWhatIsAskedFor(t *testing.T) {
	d := open(t, Options{Store: newStore(t)})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, err := d.Rows(t.Context(), nil, &pb.RowsRequest{Slices: []uint32{1, 7}, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	out := m.(*pb.RowsResponse)
	var row geoconfig.SliceRow
	if len(out.Slices) != 1 || len(out.Nodes) != 1 || len(out.Sites) != 0 || out.Cluster != "x" || json.Unmarshal(out.Slices[0], &row) != nil || row.Active != "a" {
		t.Errorf("got %v, want slice 1 and the node", out)
	}
}
