package daemon

import (
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// TestRoster_NodeChangesNothingOfOthers has a node change rows: it may change
// slices and its own row. Only admins change the rest.
func TestRoster_NodeChangesNothingOfOthers(t *testing.T) {
	r := newRoster([]string{"admin"})
	founding := geoconfig.Batch{Cluster: &geoconfig.Cluster{Secret: "new"}, Sites: []geoconfig.Site{{Name: "new"}}}
	if err := r.mayChange("n1", &founding); err != nil {
		t.Errorf("a node that is its cluster's first: %v", err)
	}
	r.take(geoconfig.Rows{Cluster: &geoconfig.Cluster{Secret: "made"}, Nodes: []geoconfig.Node{{ID: "n1"}, {ID: "n2"}}})
	for what, b := range map[string]geoconfig.Batch{
		"":                                    {Slices: []geoconfig.SliceSwap{{}}, Audit: []geoconfig.AuditRecord{{}}, Nodes: []geoconfig.Node{{ID: "n1"}}},
		"the cluster's row":                   {Cluster: &geoconfig.Cluster{}},
		"a site that is there":                {Sites: []geoconfig.Site{{Revision: 7}}},
		"the users":                           {Slices: []geoconfig.SliceSwap{{}}, Users: []geoconfig.User{{}}},
		"the row of node n2":                  {Nodes: []geoconfig.Node{{ID: "n1"}, {ID: "n2"}}},
		geoconfig.ClusterKey().String() + ",": {Remove: []geoconfig.Removal{{Key: geoconfig.ClusterKey()}}},
	} {
		if err := r.mayChange("admin", &b); err != nil {
			t.Errorf("an admin may not change %q: %v", what, err)
		}
		err := r.mayChange("n1", &b)
		switch {
		case what == "" && err != nil:
			t.Errorf("a node may not change what it must: %v", err)
		case what != "" && (!fault.Is(err, fault.Permission) && !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), what)):
			t.Errorf("a node changes %s: got %v, want Permission", what, err)
		}
	}
	for peer, want := range map[string]fault.Kind{"admin": fault.None, "n1": fault.None, "n3": fault.Unauthorized} {
		if got := fault.KindOf(r.allow(peer, true)); got != want {
			t.Errorf("%s: got %v, want %v", peer, got, want)
		}
	}
}
