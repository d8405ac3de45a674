package api_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/availability"
)

// expected asks for a prediction.
func (f *fleet) expected(body map[string]any) view.Availability {
	f.t.Helper()
	w := f.request(http.MethodPost, "/api/v1/availability", "viewer", body)
	var a view.Availability
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		f.t.Fatalf("%v: got %d %s", body, w.Code, w.Body)
	}
	return a
}

func TestAvailability_StartsFromTheCluster(t *testing.T) {
	f := newFleet(t, 3)
	one, two := f.expected(map[string]any{"level": 1}), f.expected(map[string]any{"level": 2, "stored_bytes": 1000})
	if one.Nodes < 2 || one.Slices != 3 || one.Takeovers != 0 || two.Takeovers == 0 || two.Sites != min(2, two.SitesThere) {
		t.Errorf("got %+v and %+v", one, two)
	}
	if two.Lost >= one.Lost || two.DowntimeMS >= one.DowntimeMS || two.DowntimeMS != two.PausesMS+two.WaitsMS || math.Abs(two.LostBytes-1000*two.Lost) > 1e-12 {
		t.Errorf("two copies: %+v, one: %+v", two, one)
	}
	given := map[string]any{"node_failures_per_year": 12.0, "takeover_ms": 1300, "node_losses_per_year": 0.5, "copy_bytes_per_s": 1e6}
	got := f.expected(map[string]any{"level": 2, "assumptions": given})
	a := got.Assumptions
	if *a.NodeFailuresPerYear != 12 || *a.TakeoverMS != 1300 || *a.NodeLossesPerYear != 0.5 || *a.CopyBytesPerS != 1e6 || *a.SiteLossesPerYear != availability.Defaults().SiteLosses {
		t.Errorf("it rests on %+v, want what was given, and defaults", a)
	}
	if got.Takeovers <= two.Takeovers || got.Lost <= two.Lost {
		t.Errorf("with more failures: %+v, before: %+v", got, two)
	}
	if a := one.Assumptions; *a.LeaseMS != 2000 || *a.TakeoverMS != 2500 || *a.FailedAfterMS != 600_000 {
		t.Errorf("it rests on %+v, want the node's settings", a)
	}
}

func TestAvailability_RefusesWhatCannotBe(t *testing.T) {
	f := newFleet(t, 1)
	for say, body := range map[string]map[string]any{
		"level":                  {"level": 0},
		"add nodes":              {"level": 16},
		"at most one site":       {"level": 1, "sites": 2},
		"node_failures_per_year": {"level": 1, "assumptions": map[string]any{"node_failures_per_year": -1}},
		"copy_bytes_per_s":       {"level": 2, "assumptions": map[string]any{"copy_bytes_per_s": 0}},
		"copies are missing":     {"level": 1, "assumptions": map[string]any{"node_outage_ms": 315360000000}},
	} {
		w := f.request(http.MethodPost, "/api/v1/availability", "viewer", body)
		if w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), say) {
			t.Errorf("%v: got %d %s, want that it says %q", body, w.Code, w.Body, say)
		}
	}
}
