package plan_test

import (
	"reflect"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

func removal(keys ...geoconfig.RowKey) []geoconfig.Removal {
	var out []geoconfig.Removal
	for _, key := range keys {
		out = append(out, geoconfig.Removal{Key: key, Revision: seedRev})
	}
	return out
}

func siteKey(name ids.Site) geoconfig.RowKey { return geoconfig.Site{Name: name}.Key() }
func nodeKey(id ids.Node) geoconfig.RowKey   { return geoconfig.Node{ID: id}.Key() }

func TestBatch_HoldsReferences(t *testing.T) {
	member := func(id ids.Node) geoconfig.Batch {
		return swapped(func(s *geoconfig.SliceSwap) {
			s.Row.Members = append(s.Row.Members, geoconfig.Member{Node: id, State: geoconfig.Migrating})
		})
	}
	with := func(b geoconfig.Batch, change func(*geoconfig.Batch)) geoconfig.Batch {
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		batch   geoconfig.Batch
		want    fault.Kind
		subject string
	}{
		"a node at no site": {geoconfig.Batch{Nodes: []geoconfig.Node{{ID: "n4", Site: "rome"}}}, fault.Invalid, "nodes/n4"},
		"a node at a new site": {geoconfig.Batch{
			Sites: []geoconfig.Site{{Name: "rome"}}, Nodes: []geoconfig.Node{{ID: "n4", Site: "rome"}},
		}, fault.None, ""},
		"a node at a site that goes": {geoconfig.Batch{
			Nodes:  []geoconfig.Node{{ID: "n4", Site: "oslo"}, {ID: "n3", Site: "paris", Revision: seedRev}},
			Remove: removal(siteKey("oslo")),
		}, fault.NotEmpty, "sites/oslo"},
		"a member that is no node": {member("n9"), fault.Invalid, "slices/7"},
		"a member that is new": {with(member("n4"), func(b *geoconfig.Batch) {
			b.Nodes = []geoconfig.Node{{ID: "n4", Site: "oslo"}}
		}), fault.None, ""},
		"a member that goes": {with(member("n3"), func(b *geoconfig.Batch) { b.Remove = removal(nodeKey("n3")) }), fault.NotEmpty, "nodes/n3"},

		"a site with nodes":       {geoconfig.Batch{Remove: removal(siteKey("oslo"))}, fault.NotEmpty, "sites/oslo"},
		"a site with its nodes":   {geoconfig.Batch{Remove: removal(siteKey("oslo"), nodeKey("n3"))}, fault.None, ""},
		"a node that is a member": {geoconfig.Batch{Remove: removal(nodeKey("n2"))}, fault.NotEmpty, "nodes/n2"},
		"a node that is none":     {geoconfig.Batch{Remove: removal(nodeKey("n3"))}, fault.None, ""},
		"a site that its node leaves": {geoconfig.Batch{
			Nodes: []geoconfig.Node{{ID: "n3", Site: "paris", Revision: seedRev}}, Remove: removal(siteKey("oslo")),
		}, fault.None, ""},
		"a site that its node stays at": {geoconfig.Batch{
			Nodes: []geoconfig.Node{{ID: "n3", Site: "oslo", Version: "2", Revision: seedRev}}, Remove: removal(siteKey("oslo")),
		}, fault.NotEmpty, "sites/oslo"},
		"a node that its slice drops": {with(swapped(func(s *geoconfig.SliceSwap) { s.Row.Members = s.Row.Members[:1] }), func(b *geoconfig.Batch) {
			b.Remove = removal(nodeKey("n2"))
		}), fault.None, ""},
		"a node that its slice keeps": {with(swapped(nil), func(b *geoconfig.Batch) { b.Remove = removal(nodeKey("n2")) }), fault.NotEmpty, "nodes/n2"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == fault.None {
				taken(t, seeded(t), c.batch)
				return
			}
			refused(t, seeded(t), c.batch, c.want, c.subject)
		})
	}
}

func TestReferences_ListWhatARowNames(t *testing.T) {
	for name, c := range map[string]struct {
		table geoconfig.Table
		row   any
		want  []geoconfig.RowKey
	}{
		"a node":               {geoconfig.NodesTable, geoconfig.Node{ID: "n1", Site: "paris"}, []geoconfig.RowKey{siteKey("paris")}},
		"a slice":              {geoconfig.SlicesTable, sliceRow(7, 1), []geoconfig.RowKey{nodeKey("n1"), nodeKey("n2")}},
		"a slice of no member": {geoconfig.SlicesTable, geoconfig.SliceRow{ID: 7}, nil},
		"a site":               {geoconfig.SitesTable, geoconfig.Site{Name: "paris"}, nil},
		"a user":               {geoconfig.UsersTable, ann(), nil},
		"the cluster":          {geoconfig.ClusterTable, geoconfig.Cluster{ID: "c1"}, nil},
		"an unknown table":     {geoconfig.UsersTable + 1, geoconfig.Site{Name: "paris"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.References(c.table, encode(t, c.row))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestReferences_TellCorruptRows(t *testing.T) {
	for _, table := range []geoconfig.Table{geoconfig.NodesTable, geoconfig.SlicesTable} {
		if _, err := plan.References(table, []byte("{")); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%v: got %v, want kind %v", table, err, fault.Corrupt)
		}
	}
}
