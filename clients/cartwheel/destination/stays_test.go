package destination

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestStaysWith_NeedsAnOpenSliceOfThePolicyAtHome(t *testing.T) {
	want := geoconfig.Policy{Home: "a", Level: 3}
	for _, c := range []struct {
		name   string
		row    geoconfig.SliceRow
		active ids.Site
		stays  bool
	}{
		{"open, of the policy, at home", geoconfig.SliceRow{Policy: want}, "a", true},
		{"spelled otherwise", geoconfig.SliceRow{Policy: geoconfig.Policy{Home: "a", Level: 3, Sites: 3, Kind: geoconfig.Ordinary}}, "a", true},
		{"closed", geoconfig.SliceRow{Policy: want, Closed: true}, "a", false},
		{"of another home", geoconfig.SliceRow{Policy: geoconfig.Policy{Home: "b", Level: 3}}, "a", false},
		{"of another level", geoconfig.SliceRow{Policy: geoconfig.Policy{Home: "a", Level: 2}}, "a", false},
		{"led elsewhere", geoconfig.SliceRow{Policy: want}, "b", false},
	} {
		if got := StaysWith(c.row, want, c.active); got != c.stays {
			t.Errorf("%s: got %v, want %v", c.name, got, c.stays)
		}
	}
}
