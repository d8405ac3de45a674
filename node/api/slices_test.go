package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
)

// walk reads all pages of a list of slices.
func walk(f *fleet, path string) (all []view.Slice) {
	f.t.Helper()
	cursor := ""
	for range 100 {
		p := get[view.List[view.Slice]](f, path+cursor)
		all = append(all, p.Items...)
		if p.Next == "" {
			if p.Total != len(all) {
				f.t.Errorf("%s: says %d in all, gave %d", path, p.Total, len(all))
			}
			return all
		}
		cursor = "&cursor=" + p.Next
	}
	f.t.Fatalf("%s: the pages do not end", path)
	return nil
}

func TestSlices_PagesHaveEachOnceInOrder(t *testing.T) {
	f := newFleet(t, 50)
	for _, sort := range []string{"id", "missing", "revision", "epoch", "level"} {
		for _, down := range []bool{false, true} {
			all := walk(f, fmt.Sprintf("/slices?limit=7&sort=%s&descending=%t", sort, down))
			seen := map[ids.Slice]bool{}
			for _, x := range all {
				seen[x.ID] = true
			}
			if len(all) != 50 || len(seen) != 50 {
				t.Errorf("by %s, descending %t: got %d, %d different, want 50", sort, down, len(all), len(seen))
			}
			if sort == "id" && slices.IsSortedFunc(all, func(a, b view.Slice) int { return int(a.ID) - int(b.ID) }) == down {
				t.Errorf("by id, descending %t: not in order", down)
			}
		}
	}
}

func TestSlices_FiltersByStateSiteAndNumber(t *testing.T) {
	f := newFleet(t, 30)
	for path, want := range map[string]int{
		"/slices?state=under_protected": 10, "/slices?state=protected": 20, "/slices?state=unavailable": 0,
		"/slices?site=lima": 30, "/slices?site=none": 0, "/slices?node=n2": 30, "/slices?home=oslo": 30, "/slices?home=lima": 0, "/slices?q=2": 11,
	} {
		if got := len(walk(f, path)); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
	away := ids.Node("n1")
	f.away.Store(&away)
	f.forgetAnswers()
	if got := len(walk(f, "/slices?state=unavailable")); got != 30 {
		t.Errorf("with the active away: got %d unavailable, want 30", got)
	}
}

func TestSlices_RefusesForeignCursors(t *testing.T) {
	f := newFleet(t, 5)
	next := get[view.List[view.Slice]](f, "/slices?limit=2").Next
	for _, cursor := range []string{"nonsense!", "AAAA", next + "&sort=epoch"} {
		if w := f.request(http.MethodGet, "/api/v1/slices?cursor="+cursor, "viewer", nil); w.Code != http.StatusBadRequest {
			t.Errorf("cursor %s: got %d, want 400", cursor, w.Code)
		}
	}
}

func TestSlices_FollowTheConfiguration(t *testing.T) {
	f := newFleet(t, 3)
	f.directory.Learn(geoconfig.SliceRow{ID: 4, Epoch: 1, Active: "n2"}, geoconfig.SliceRow{ID: 2, Epoch: 5, Active: "n2"})
	deadline := time.Now().Add(10 * time.Second)
	for len(walk(f, "/slices?limit=10")) != 4 {
		if time.Now().After(deadline) {
			t.Fatal("the new slice does not come")
		}
	}
	if x := get[view.SliceDetail](f, "/slices/2"); x.Epoch != 5 || x.Active != "n2" {
		t.Errorf("got epoch %d of %s, want 5 of n2", x.Epoch, x.Active)
	}
}

// BenchmarkSlices_Page reads pages of 100 from 100,000 slices over HTTP, and
// reports the 99th percentile.
func BenchmarkSlices_Page(b *testing.B) {
	f := newFleet(b, 100_000)
	for _, path := range []string{"/slices?limit=100", "/slices?limit=100&state=under_protected&sort=revision&descending=true", "/slices?limit=100&site=lima&sort=missing&descending=true"} {
		b.Run(path[1:], func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begun := time.Now()
				if w := f.request(http.MethodGet, "/api/v1"+path, "viewer", nil); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
		})
	}
}
