package destination

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
)

func TestPlacements_EndWithTimeOrSlice(t *testing.T) {
	var p placements
	want := geoconfig.Policy{Level: 3, Home: "a"}
	if _, ok := p.get(want, 0); ok {
		t.Error("there is one before any was put")
	}
	p.put(want, 7, keptFor)
	if s, ok := p.get(want, keptFor-1); !ok || s != 7 {
		t.Errorf("got slice %d, %v, want 7", s, ok)
	}
	if _, ok := p.get(want, keptFor); ok {
		t.Error("it is believed for too long")
	}
	other := geoconfig.Policy{Level: 1, Home: "b"}
	p.put(other, 8, time.Hour)
	p.drop(7)
	if _, ok := p.get(want, 0); ok {
		t.Error("a slice that was dropped is named")
	}
	if s, ok := p.get(other, 0); !ok || s != 8 {
		t.Errorf("got slice %d, %v, want 8", s, ok)
	}
}
