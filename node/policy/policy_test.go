package policy_test

import (
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/policy"
)

// nodes are at the site of their first letter.
func nodes(list string) []geoconfig.Node {
	var out []geoconfig.Node
	for _, id := range strings.Fields(list) {
		out = append(out, geoconfig.Node{ID: ids.Node(id), Site: ids.Site(id[:1]), Incarnation: 1})
	}
	return out
}

func TestCheck_RefusesWhatCannotBe(t *testing.T) {
	some := nodes("a1 a2 b1 c1")
	some[3].Draining = true
	for _, c := range []struct {
		name         string
		level, sites int
		home         ids.Site
		want         string
	}{
		{"all that there is", 3, 2, "a", ""},
		{"one site", 2, 1, "a", ""},
		{"no copy", 0, 0, "a", "at least one copy"},
		{"more copies than nodes", 4, 0, "a", "choose at most 3"},
		{"more sites than copies", 1, 2, "a", "choose 1 to 1"},
		{"more sites than there are", 3, 3, "a", "choose at most 2"},
		{"a home with no node that stays", 2, 0, "c", "choose a home among a, b"},
		{"too few nodes at one site", 3, 1, "a", "can hold 2 copies of 3"},
		{"too few nodes at home", 2, 1, "b", "can hold 1 copies of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := policy.Check(geoconfig.Policy{Level: c.level, Sites: c.sites, Home: c.home}, some)
			if (err == nil) != (c.want == "") || err != nil && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSet_SwapsTheRowAlone(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	members := []geoconfig.Member{{Node: "a1", State: geoconfig.Normal, Incarnation: 1}}
	_, err := store.Apply(t.Context(), geoconfig.Batch{Key: "found", Cluster: &geoconfig.Cluster{ID: "c"}, Sites: []geoconfig.Site{{Name: "a"}, {Name: "b"}},
		Nodes:  nodes("a1 b1"),
		Slices: []geoconfig.SliceSwap{{Row: geoconfig.SliceRow{ID: 4, Epoch: 1, Active: "a1", Members: members, Policy: geoconfig.Policy{Home: "a", Level: 1, Kind: geoconfig.Ordinary}}}}})
	if err != nil {
		t.Fatal(err)
	}
	two, far := 2, ids.Site("b")
	set := func(key string, id ids.Slice, c policy.Change) (geoconfig.SliceRow, error) {
		return policy.Set(t.Context(), store, changes.Order{Key: key, Who: "ann", At: time.Unix(0, 1)}, id, c)
	}
	row, err := set("k1", 4, policy.Change{Level: &two, Home: &far})
	if err != nil || row.Epoch != 2 || row.Active != "a1" || len(row.Members) != 1 || row.Policy.Level != 2 || row.Policy.Home != "b" || row.Policy.Kind != geoconfig.Ordinary {
		t.Errorf("got %+v (%v), want the other level and home in the next epoch", row, err)
	}
	if again, err := set("k2", 4, policy.Change{Level: &two}); err != nil || again.Epoch != 2 {
		t.Errorf("got %+v (%v) for the policy that it has, want nothing changed", again, err)
	}
	three := 3
	if _, err := set("k3", 4, policy.Change{Level: &three}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v for more copies than nodes", err)
	}
	if _, err := set("k4", 5, policy.Change{Level: &two}); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v for a slice that is not there", err)
	}
	rows, err := store.Read(t.Context(), geoconfig.Query{Audit: 5})
	if err != nil || len(rows.Audit) != 1 || rows.Audit[0].Action != "slice.policy" || rows.Audit[0].Detail != "level 2, sites 0, home b" {
		t.Errorf("got the records %+v (%v), want one", rows.Audit, err)
	}
}
