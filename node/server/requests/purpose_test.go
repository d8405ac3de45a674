package requests_test

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/requests"
)

func TestPurpose_FollowsFromWhatThePeerIsToTheSlice(t *testing.T) {
	member := func(n ids.Node, s geoconfig.MemberState) geoconfig.Member { return geoconfig.Member{Node: n, State: s} }
	whole := []geoconfig.Member{member("a", geoconfig.Normal), member("b", geoconfig.Normal)}
	for what, c := range map[string]struct {
		peer    ids.Node
		members []geoconfig.Member
		want    budget.Class
	}{
		"a client":                         {"client", whole, budget.Foreground},
		"a node for its clients":           {"z", whole, budget.Foreground},
		"a standby":                        {"b", whole, budget.Replication},
		"a member that was away":           {"c", append(whole[:2:2], member("c", geoconfig.Recovering)), budget.Repair},
		"a new member in place of a lost":  {"c", append(whole[:1:1], member("c", geoconfig.Migrating)), budget.Repair},
		"a new member in place of a whole": {"c", append(whole[:2:2], member("c", geoconfig.Migrating)), budget.Rebalancing},
		"a member that was taken out":      {"c", append(whole[:2:2], member("c", geoconfig.Failed)), budget.Repair},
	} {
		row := func(id ids.Slice) (geoconfig.SliceRow, bool) {
			return geoconfig.SliceRow{ID: 7, Policy: geoconfig.Policy{Level: 2}, Members: c.members}, id == 7
		}
		if got := requests.Purpose(row, 7, c.peer); got != c.want {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
	}
}
