package operate

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// voids counts the times that all leases of a slice were dropped.
type voids struct {
	noLeases
	n int
}

func (v *voids) Void(ids.Slice) { v.n++ }

// TestStepDown_KeepsLeasesOfAnActiveThatStays stops acting between two epochs, as
// a swap whose outcome is late makes it: whom it granted leases may not hear of
// that. They go with the active.
func TestStepDown_KeepsLeasesOfAnActiveThatStays(t *testing.T) {
	s := newSingle(t)
	leases := &voids{}
	s.o.Leases = leases
	row := geoconfig.SliceRow{ID: theSlice, Epoch: 2, Active: "n", Members: []geoconfig.Member{{Node: "n", State: geoconfig.Normal}}}
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleActive, Row: &row})
	if leases.n != 0 {
		t.Error("the leases were dropped though the node stays the active")
	}
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleLeading, Row: &row})
	other := row
	other.Epoch, other.Active = 3, "m"
	s.role(&replica.Role{Slice: theSlice, Kind: replica.RoleStandby, Row: &other})
	if leases.n != 1 {
		t.Errorf("the leases were dropped %d times when another node became the active, want once", leases.n)
	}
}
