package drain_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/whatif"
)

// state has the nodes named, each at the site of its first letter, and slice 7 of
// 1000 bytes with some members, the active first. A member with F failed.
func state(nodes string, level int, members ...string) whatif.State {
	var s whatif.State
	for _, id := range strings.Fields(nodes) {
		s.Nodes = append(s.Nodes, whatif.Node{Node: geoconfig.Node{ID: ids.Node(id), Site: ids.Site(id[:1]), Incarnation: 1}})
	}
	row := geoconfig.SliceRow{ID: 7, Epoch: 1, Active: ids.Node(members[0]), Policy: geoconfig.Policy{Home: ids.Site(members[0][:1]), Level: level}}
	for _, m := range members {
		state := geoconfig.Normal
		if strings.HasSuffix(m, "F") {
			state = geoconfig.Failed
		}
		row.Members = append(row.Members, geoconfig.Member{Node: ids.Node(m[:2]), State: state})
	}
	s.Slices = []whatif.Slice{{SliceRow: row, Bytes: 1000}}
	return s
}

func TestCheck_NamesWhatStandsInTheWay(t *testing.T) {
	away := state("a1 b1 c1 d1", 3, "a1", "b1", "c1")
	away.Nodes[3].Away = true
	for _, c := range []struct {
		name           string
		state          whatif.State
		nodes          []ids.Node
		obstacle, loss string
	}{
		{"another node at home", state("a1 a2 b1 c1", 3, "a1", "b1", "c1"), []ids.Node{"a1"}, "", ""},
		{"another node elsewhere", state("a1 b1 c1 d1", 3, "a1", "b1", "c1"), []ids.Node{"a1"}, "", "no other node can take it"},
		{"no other node", state("a1 b1 c1", 3, "a1", "b1", "c1"), []ids.Node{"c1"}, "needs 3 copies, and the other nodes that answer can hold 2", ""},
		{"the other node is away", away, []ids.Node{"c1"}, "can hold 2", ""},
		{"a failed member", state("a1 b1 c1 d1", 3, "a1", "b1F", "c1"), []ids.Node{"c1"}, "has a failed member at b", ""},
		{"fewer sites", state("a1 a2 b1", 2, "a1", "b1"), []ids.Node{"b1"}, "", "at 1 sites, and its policy names 2"},
		{"a node of no slice", state("a1 b1 c1 d1", 3, "a1", "b1", "c1"), []ids.Node{"d1"}, "", ""},
		{"two nodes at once", state("a1 b1 c1 d1", 3, "a1", "b1", "c1"), []ids.Node{"b1", "c1"}, "can hold 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := drain.Check(c.state, c.nodes)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []struct {
				got  []drain.Remark
				want string
			}{{v.Obstacles, c.obstacle}, {v.Losses, c.loss}} {
				if (len(part.got) == 1) != (part.want != "") || len(part.got) > 1 || part.want != "" && !strings.Contains(part.got[0].Text, part.want) {
					t.Errorf("got %+v, want one with %q", part.got, part.want)
				}
			}
		})
	}
	if _, err := drain.Check(state("a1", 1, "a1"), []ids.Node{"x"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a node that is not there", err)
	}
}

func TestRemains_CountsWhatIsThere(t *testing.T) {
	s := state("a1 b1", 2, "a1", "b1")
	s.Slices = append(s.Slices, whatif.Slice{SliceRow: geoconfig.SliceRow{ID: 8, Active: "b1", Members: []geoconfig.Member{{Node: "b1"}}}, Bytes: whatif.UnknownSize})
	if got, want := drain.Remains(s.Slices, []ids.Node{"b1"}), (drain.Left{Slices: 2, Active: 1, Bytes: 1000, Unknown: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// busy is a store in which a node's row changes before the first batch comes.
type busy struct {
	*inmem.Store
	t    *testing.T
	once bool
}

func (b *busy) Apply(ctx context.Context, batch geoconfig.Batch) (ids.Revision, error) {
	if !b.once {
		b.once = true
		row := batch.Nodes[0]
		row.Draining, row.UsedBytes = false, 5
		if _, err := b.Store.Apply(ctx, geoconfig.Batch{Key: "refresh", Nodes: []geoconfig.Node{row}}); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.Store.Apply(ctx, batch)
}

func TestSet_WritesTheRowsAndARecord(t *testing.T) {
	store := &busy{Store: inmem.New(), t: t}
	defer store.Close()
	_, err := store.Store.Apply(t.Context(), geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c", Feature: version.Draining}, Sites: []geoconfig.Site{{Name: "a"}},
		Nodes: []geoconfig.Node{{ID: "a1", Site: "a"}, {ID: "a2", Site: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	order := changes.Order{Key: "k1", Who: "ann", At: time.Unix(0, 9)}
	if err := drain.Set(t.Context(), store, order, []ids.Node{"a1", "x"}, true); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a node that is not there", err)
	}
	for range 2 {
		if err := drain.Set(t.Context(), store, order, []ids.Node{"a1"}, true); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := store.Read(t.Context(), geoconfig.Query{Nodes: true, Audit: 10})
	if err != nil || !rows.Nodes[0].Draining || rows.Nodes[0].UsedBytes != 5 || rows.Nodes[1].Draining {
		t.Errorf("got %+v (%v), want a1 alone drained, with what it wrote meanwhile", rows.Nodes, err)
	}
	if !slices.ContainsFunc(rows.Audit, func(a geoconfig.AuditRecord) bool {
		return a.Who == "ann" && a.Action == "node.drain" && a.Subject == "nodes/a1" && a.AtNS == 9
	}) || len(rows.Audit) != 1 {
		t.Errorf("got the records %+v, want one of the drain", rows.Audit)
	}
	order.Key = "k2"
	if err := drain.Set(t.Context(), store, order, []ids.Node{"a1"}, false); err != nil {
		t.Fatal(err)
	}
	if rows, err := store.Read(t.Context(), geoconfig.Query{Nodes: true}); err != nil || rows.Nodes[0].Draining {
		t.Errorf("got %+v (%v), want a1 not drained", rows.Nodes, err)
	}
}

func TestSet_WaitsForOldNodes(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	_, err := store.Apply(t.Context(), geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c"}, Sites: []geoconfig.Site{{Name: "a"}}, Nodes: []geoconfig.Node{{ID: "a1", Site: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	order := changes.Order{Key: "k", Who: "ann", At: time.Unix(0, 1)}
	if err := drain.Set(t.Context(), store, order, []ids.Node{"a1"}, true); !fault.Is(err, fault.NotSupported) {
		t.Errorf("got %v while a node may not know of draining", err)
	}
	if err := drain.Set(t.Context(), store, order, []ids.Node{"a1"}, false); err != nil {
		t.Errorf("got %v for the end of it", err)
	}
}
