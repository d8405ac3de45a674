package replica

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// TestReconfigure_RefusesAChangeOfAnEarlierRow has a member that failed come
// back before the change that replaces it reaches the active.
func TestReconfigure_RefusesAChangeOfAnEarlierRow(t *testing.T) {
	tr := newTrio(t)
	a := tr.nodes["a"]
	failed := a.groups[1].row.Clone()
	failed.Epoch++
	setState(&failed, "c", geoconfig.Failed)
	row := failed.Clone()
	row.Epoch++
	setState(&row, "c", geoconfig.Normal)
	for _, r := range []*geoconfig.SliceRow{&failed, &row} {
		for _, id := range tr.order {
			tr.nodes[id].Learn(tr.now, r)
		}
	}
	tr.lead(t)
	change := Change{From: failed.Epoch, Add: []geoconfig.Member{{Node: "d", Incarnation: 1}}, Remove: []ids.Node{"c"}}
	if kind := a.Reconfigure(tr.now, 1, change); kind != fault.Again || a.groups[1].swap != nil {
		t.Errorf("the change gets %v and proposes %+v, want %v and nothing: the member is back", kind, a.groups[1].swap, fault.Again)
	}
	change.From = row.Epoch
	if kind := a.Reconfigure(tr.now, 1, change); kind != fault.None || a.groups[1].swap == nil {
		t.Errorf("the change of the present row gets %v and proposes %+v, want a swap", kind, a.groups[1].swap)
	}
}
