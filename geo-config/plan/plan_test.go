package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// everything is a batch that changes a row of each table.
func everything() geoconfig.Batch {
	bob := ann()
	bob.Name, bob.Revision = "bob", 0
	return geoconfig.Batch{
		Key:     "key",
		Cluster: &geoconfig.Cluster{ID: "c1", Generation: 3, Revision: seedRev},
		Sites:   []geoconfig.Site{{Name: "rome"}, {Name: "oslo", Location: "north", Revision: seedRev}},
		Nodes:   []geoconfig.Node{{ID: "n4", Site: "rome"}},
		Users:   []geoconfig.User{bob},
		Slices:  []geoconfig.SliceSwap{{From: 4, Row: sliceRow(7, 5)}},
		Remove:  []geoconfig.Removal{{Key: ann().RowKey(), Revision: seedRev}},
		Audit:   []geoconfig.AuditRecord{{Who: "ann", Action: "test.all"}},
	}
}

func TestBatch_WritesRowsInItsOrder(t *testing.T) {
	writes := taken(t, seeded(t), everything())
	var got []string
	for _, w := range writes {
		got = append(got, fmt.Sprint(w.Key, " ", w.Body == nil))
	}
	want := []string{
		"cluster/cluster false", "sites/rome false", "sites/oslo false", "nodes/n4 false", "users/bob false",
		"slices/7 false", "users/ann true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBatch_StampsRevisionAndGeneration(t *testing.T) {
	for _, w := range taken(t, seeded(t), everything()) {
		if w.Body == nil {
			continue
		}
		var row struct {
			Revision   ids.Revision    `json:"revision"`
			Generation *ids.Generation `json:"generation"`
		}
		if err := json.Unmarshal(w.Body, &row); err != nil {
			t.Fatalf("%v: %v", w.Key, err)
		}
		if row.Revision != nextRev {
			t.Errorf("%v: got revision %d, want %d", w.Key, row.Revision, nextRev)
		}
		if row.Generation != nil && *row.Generation != 3 {
			t.Errorf("%v: got generation %d, want 3", w.Key, *row.Generation)
		}
	}
}

func TestBatch_LeavesWhatItIsGiven(t *testing.T) {
	v, b := seeded(t), everything()
	taken(t, v, b)
	if want := everything(); !reflect.DeepEqual(b, want) {
		t.Errorf("the batch is now %+v, want %+v", b, want)
	}
	if want := seeded(t); !reflect.DeepEqual(v.rows, want.rows) {
		t.Error("planning changed the rows of the view")
	}
}

func TestBatch_WritesNothingForAuditAlone(t *testing.T) {
	writes := taken(t, seeded(t), geoconfig.Batch{Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "test.note"}}})
	if len(writes) != 0 {
		t.Errorf("got %d writes, want none", len(writes))
	}
}

func TestBatch_BringsTheClusterFirst(t *testing.T) {
	v := &table{}
	b := geoconfig.Batch{Sites: []geoconfig.Site{{Name: "paris"}}}
	refused(t, v, b, fault.Invalid, "cluster/cluster")
	b.Cluster = &geoconfig.Cluster{ID: "c1"}
	if writes := taken(t, v, b); len(writes) != 2 {
		t.Errorf("got %d writes, want 2", len(writes))
	}
}

func TestBatch_KeepsTheClusterItIsOf(t *testing.T) {
	for name, c := range map[string]struct {
		batch   geoconfig.Batch
		want    fault.Kind
		subject string
	}{
		"another cluster":           {geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c2", Generation: 2, Revision: seedRev}}, fault.WrongCluster, "cluster/cluster"},
		"a lower generation":        {geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1, Revision: seedRev}}, fault.WrongCluster, "cluster/cluster"},
		"a stale row":               {geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c1", Generation: 2, Revision: seedRev - 1}}, fault.Conflict, "cluster/cluster"},
		"a slice of the past":       {swapped(func(s *geoconfig.SliceSwap) { s.Row.Generation = 1 }), fault.WrongCluster, "slices/7"},
		"a slice of the future":     {swapped(func(s *geoconfig.SliceSwap) { s.Row.Generation = 3 }), fault.WrongCluster, "slices/7"},
		"the same generation":       {geoconfig.Batch{Cluster: &geoconfig.Cluster{ID: "c1", Generation: 2, Revision: seedRev}}, fault.None, ""},
		"a slice of the generation": {swapped(func(s *geoconfig.SliceSwap) { s.Row.Generation = 2 }), fault.None, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == fault.None {
				taken(t, seeded(t), c.batch)
				return
			}
			refused(t, seeded(t), c.batch, c.want, c.subject)
		})
	}
	// A slice may have the generation that the same batch brings.
	both := swapped(func(s *geoconfig.SliceSwap) { s.Row.Generation = 3 })
	both.Cluster = &geoconfig.Cluster{ID: "c1", Generation: 3, Revision: seedRev}
	taken(t, seeded(t), both)
}

func TestBatch_SwapsByRevision(t *testing.T) {
	site := func(name ids.Site, rev ids.Revision) geoconfig.Batch {
		return geoconfig.Batch{Sites: []geoconfig.Site{{Name: name, Revision: rev}}}
	}
	node := func(id ids.Node, rev ids.Revision) geoconfig.Batch {
		return geoconfig.Batch{Nodes: []geoconfig.Node{{ID: id, Site: "paris", Revision: rev}}}
	}
	user := func(name ids.User, rev ids.Revision) geoconfig.Batch {
		u := ann()
		u.Name, u.Revision = name, rev
		return geoconfig.Batch{Users: []geoconfig.User{u}}
	}
	remove := func(name ids.User, rev ids.Revision) geoconfig.Batch {
		return geoconfig.Batch{Remove: []geoconfig.Removal{{Key: geoconfig.User{Name: name}.RowKey(), Revision: rev}}}
	}
	for name, c := range map[string]struct {
		batch   geoconfig.Batch
		subject string // of the conflict; "": it is taken
	}{
		"a site as it was read":    {site("paris", seedRev), ""},
		"a new site":               {site("rome", 0), ""},
		"a site that exists":       {site("paris", 0), "sites/paris"},
		"a site that is gone":      {site("rome", seedRev), "sites/rome"},
		"a site of before":         {site("paris", seedRev-1), "sites/paris"},
		"a site of the future":     {site("paris", seedRev+1), "sites/paris"},
		"a node as it was read":    {node("n1", seedRev), ""},
		"a node that exists":       {node("n1", 0), "nodes/n1"},
		"a node that is gone":      {node("n9", seedRev), "nodes/n9"},
		"a user as it was read":    {user("ann", seedRev), ""},
		"a user that exists":       {user("ann", 0), "users/ann"},
		"a user of before":         {user("ann", seedRev-1), "users/ann"},
		"a removal as it was read": {remove("ann", seedRev), ""},
		"a removal of before":      {remove("ann", seedRev-1), "users/ann"},
		"a removal of what's gone": {remove("bob", seedRev), "users/bob"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.subject == "" {
				taken(t, seeded(t), c.batch)
				return
			}
			refused(t, seeded(t), c.batch, fault.Conflict, c.subject)
		})
	}
}

func TestBatch_SwapsSlicesByEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		id   ids.Slice
		from ids.Epoch
		to   ids.Epoch
		want fault.Kind
	}{
		"the next epoch":         {7, 4, 5, fault.None},
		"a later epoch":          {7, 4, 90, fault.None},
		"a new slice":            {8, 0, 1, fault.None},
		"a slice that exists":    {7, 0, 5, fault.Conflict},
		"a slice that does not":  {8, 4, 5, fault.Conflict},
		"from an old epoch":      {7, 3, 5, fault.Conflict},
		"from one yet to come":   {7, 5, 6, fault.Conflict},
		"the same epoch":         {7, 4, 4, fault.Invalid},
		"an epoch that falls":    {7, 4, 3, fault.Invalid},
		"the epoch before first": {8, 0, 0, fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			b := geoconfig.Batch{Slices: []geoconfig.SliceSwap{{From: c.from, Row: sliceRow(c.id, c.to)}}}
			if c.want == fault.None {
				taken(t, seeded(t), b)
				return
			}
			refused(t, seeded(t), b, c.want, geoconfig.SliceKey(c.id).String())
		})
	}
}

func TestBatch_WantsAnActiveThatWasNormal(t *testing.T) {
	takeover := func(by ids.Node, acceptLoss bool) geoconfig.Batch {
		return swapped(func(s *geoconfig.SliceSwap) {
			s.AcceptLoss, s.Row.Active = acceptLoss, by
			s.Row.Members = []geoconfig.Member{{Node: by, State: geoconfig.Normal}}
		})
	}
	v := seeded(t)
	taken(t, v, takeover("n2", false))
	refused(t, v, takeover("n3", false), fault.Invalid, "slices/7") // it was no member
	taken(t, v, takeover("n3", true))

	row := sliceRow(7, 4)
	row.Members[1].State = geoconfig.Recovering
	v.rows[geoconfig.SliceKey(7)] = encode(t, row)
	refused(t, v, takeover("n2", false), fault.Invalid, "slices/7") // it was a junior
	taken(t, v, takeover("n2", true))
}

func TestBatch_TakesARowOnce(t *testing.T) {
	site := geoconfig.Site{Name: "oslo", Revision: seedRev}
	gone := geoconfig.Removal{Key: ann().RowKey(), Revision: seedRev}
	twice := swapped(nil)
	twice.Slices = append(twice.Slices, twice.Slices[0])
	for name, c := range map[string]struct {
		batch   geoconfig.Batch
		subject string
	}{
		"a site twice":          {geoconfig.Batch{Sites: []geoconfig.Site{site, site}}, "sites/oslo"},
		"a slice twice":         {twice, "slices/7"},
		"a removal twice":       {geoconfig.Batch{Remove: []geoconfig.Removal{gone, gone}}, "users/ann"},
		"a change, its removal": {geoconfig.Batch{Users: []geoconfig.User{ann()}, Remove: []geoconfig.Removal{gone}}, "users/ann"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, seeded(t), c.batch, fault.Invalid, c.subject) })
	}
}

func TestBatch_RemovesOnlyWhatMayGo(t *testing.T) {
	for name, r := range map[string]geoconfig.Removal{
		"the cluster":       {Key: geoconfig.ClusterKey(), Revision: seedRev},
		"a slice":           {Key: geoconfig.SliceKey(7), Revision: seedRev},
		"of no known table": {Key: geoconfig.RowKey{Table: 7, Name: "x"}, Revision: seedRev},
		"of no revision":    {Key: ann().RowKey()},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, seeded(t), geoconfig.Batch{Remove: []geoconfig.Removal{r}}, fault.Invalid, r.Key.String())
		})
	}
}

func TestBatch_PassesOnWhatTheViewFails(t *testing.T) {
	fails := func(err error) error { return fault.Wrap(fault.IO, "test.View", "", err) }
	remove := geoconfig.Batch{Remove: []geoconfig.Removal{{Key: ann().RowKey(), Revision: seedRev}}}
	v := seeded(t)
	v.failRow = fails(errors.New("the disk is gone"))
	refused(t, v, everything(), fault.IO, "")
	v = seeded(t)
	v.failRef = fails(errors.New("the disk is gone"))
	refused(t, v, remove, fault.IO, "")
	taken(t, v, swapped(nil)) // nothing asks for referrers
}

func TestBatch_TellsARowThatIsCorrupt(t *testing.T) {
	rename := geoconfig.Batch{Sites: []geoconfig.Site{{Name: "oslo", Revision: seedRev}}}
	for name, c := range map[string]struct {
		key   geoconfig.RowKey
		batch geoconfig.Batch
	}{
		"the cluster": {geoconfig.ClusterKey(), rename},
		"a site":      {geoconfig.Site{Name: "oslo"}.Key(), rename},
		"a slice":     {geoconfig.SliceKey(7), swapped(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			v := seeded(t)
			v.rows[c.key] = []byte("{")
			refused(t, v, c.batch, fault.Corrupt, c.key.String())
		})
	}
}

func TestBatch_RefusesALowerFeatureLevel(t *testing.T) {
	var v plan.View = seeded(t)
	raised := geoconfig.Cluster{ID: "c1", Generation: 3, Feature: 2, Revision: seedRev}
	writes := taken(t, v, geoconfig.Batch{Key: "raise", Cluster: &raised})
	if len(writes) != 1 {
		t.Fatalf("got %d writes, want the cluster's row", len(writes))
	}
	v = withCluster{v, writes[0].Body}
	raised.Feature, raised.Revision = 1, nextRev
	if _, err := plan.Batch(v, geoconfig.Batch{Key: "fall", Cluster: &raised}, nextRev+1); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v for a lower level, want Invalid", err)
	}
}

// withCluster is a view with another row of the cluster.
type withCluster struct {
	plan.View
	body []byte
}

func (v withCluster) Row(key geoconfig.RowKey) ([]byte, bool, error) {
	if key == geoconfig.ClusterKey() {
		return v.body, true, nil
	}
	return v.View.Row(key)
}
