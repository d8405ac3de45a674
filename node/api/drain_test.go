package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/api/view"
)

// newOperated is a fleet whose nodes all know of draining.
func newOperated(t *testing.T, slices int) *fleet {
	t.Helper()
	f := newFleet(t, slices)
	rows := f.rows(geoconfig.Query{})
	rows.Cluster.Feature = version.Feature
	f.apply(geoconfig.Batch{Key: "feature", Cluster: rows.Cluster})
	f.refresh()
	return f
}

// addNode adds a third node, at the site of n1.
func (f *fleet) addNode() {
	f.t.Helper()
	f.apply(geoconfig.Batch{Key: "n3", Nodes: []geoconfig.Node{{ID: "n3", Site: "oslo", Incarnation: 1}}})
	f.refresh()
}

func (f *fleet) refresh() {
	f.t.Helper()
	if err := f.directory.Refresh(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) rows(q geoconfig.Query) geoconfig.Rows {
	f.t.Helper()
	rows, err := f.store.Read(f.t.Context(), q)
	if err != nil {
		f.t.Fatal(err)
	}
	return rows
}

// draining lists the nodes whose rows say so, and how often somebody ordered it.
func (f *fleet) draining() (nodes string, orders int) {
	f.t.Helper()
	rows := f.rows(geoconfig.Query{Nodes: true, Audit: 50})
	for _, n := range rows.Nodes {
		if n.Draining {
			nodes += string(n.ID) + " "
		}
	}
	for _, a := range rows.Audit {
		if a.Action == "node.drain" || a.Action == "node.undrain" {
			orders++
		}
	}
	return strings.TrimSpace(nodes), orders
}

func verdictOf(t *testing.T, w *httptest.ResponseRecorder) (v view.DrainVerdict) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	return v
}

func TestDrain_RefusesWhatCannotLeave(t *testing.T) {
	f := newOperated(t, 3)
	post := func(path string, body any, headers ...string) *httptest.ResponseRecorder {
		return f.request(http.MethodPost, "/api/v1"+path, "operator", body, headers...)
	}
	v := verdictOf(t, post("/nodes/n2/drain", map[string]bool{"dry_run": true}))
	if !v.DryRun || v.Left.Slices != 3 || v.Left.Active != 0 || v.ObstaclesTotal != 3 || !strings.Contains(v.Obstacles[0].Text, "needs 2 copies") {
		t.Errorf("a dry run: got %+v", v)
	}
	for _, path := range []string{"/nodes/n2/drain", "/sites/lima/drain"} {
		if w := post(path, map[string]bool{}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"busy"`) || !strings.Contains(w.Body.String(), "needs 2 copies") {
			t.Errorf("%s: got %d %s, want 409 with the obstacle", path, w.Code, w.Body)
		}
	}
	if nodes, orders := f.draining(); nodes != "" || orders != 0 {
		t.Errorf("%q are drained by %d orders, want none", nodes, orders)
	}
	for range 2 {
		if v := verdictOf(t, post("/nodes/n2/drain", map[string]bool{"force": true}, "Idempotency-Key", "k")); v.DryRun || v.ObstaclesTotal != 3 {
			t.Errorf("forced: got %+v", v)
		}
	}
	if nodes, orders := f.draining(); nodes != "n2" || orders != 1 {
		t.Errorf("%q are drained by %d orders, want n2 by one", nodes, orders)
	}
	for path, want := range map[string]int{"/nodes/none/drain": http.StatusNotFound, "/sites/none/drain": http.StatusNotFound, "/nodes/none/undrain": http.StatusNotFound} {
		if w := post(path, map[string]bool{}); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

func TestDrain_ShowsWhatIsLeft(t *testing.T) {
	f := newOperated(t, 3)
	f.addNode()
	if w := f.request(http.MethodPost, "/api/v1/nodes/n1/drain", "operator", map[string]bool{}, "If-Match", `"9999"`); w.Code != http.StatusPreconditionFailed {
		t.Errorf("another ETag: got %d %s, want 412", w.Code, w.Body)
	}
	v := verdictOf(t, f.request(http.MethodPost, "/api/v1/nodes/n1/drain", "operator", map[string]bool{}))
	if v.ObstaclesTotal != 0 || v.LossesTotal != 0 || v.Left.Slices != 3 || v.Left.Active != 3 {
		t.Errorf("got %+v, want nothing in the way", v)
	}
	f.refresh()
	n := get[view.Node](f, "/nodes/n1")
	if !n.Draining || n.Left == nil || n.Left.Slices != 3 || n.Left.Active != 3 {
		t.Errorf("got %+v, want it drained with three slices left", n)
	}
	for _, n := range get[view.List[view.Node]](f, "/nodes").Items {
		if n.Draining != (n.ID == "n1") || (n.Left != nil) != n.Draining {
			t.Errorf("%s: got draining %v with %+v left", n.ID, n.Draining, n.Left)
		}
	}
	if w := f.request(http.MethodPost, "/api/v1/nodes/n1/undrain", "operator", nil); w.Code != http.StatusOK {
		t.Errorf("undrain: got %d %s", w.Code, w.Body)
	}
	if nodes, orders := f.draining(); nodes != "" || orders != 2 {
		t.Errorf("%q are drained after %d orders, want none after two", nodes, orders)
	}
}

func TestDrainSite_IsAboutTheSitesRow(t *testing.T) {
	f := newOperated(t, 1)
	f.addNode()
	etag := f.request(http.MethodGet, "/api/v1/sites/oslo", "viewer", nil).Header().Get("ETag")
	drain := func(match string) int {
		return f.request(http.MethodPost, "/api/v1/sites/oslo/drain", "operator", map[string]bool{"force": true}, "If-Match", match).Code
	}
	if code := drain(`"9999"`); code != http.StatusPreconditionFailed {
		t.Errorf("another ETag: got %d, want 412", code)
	}
	if code := drain(etag); code != http.StatusOK {
		t.Errorf("the site's ETag: got %d, want 200", code)
	}
	if nodes, _ := f.draining(); nodes != "n1 n3" {
		t.Errorf("%q are drained, want both nodes of the site", nodes)
	}
	f.refresh()
	if w := f.request(http.MethodPost, "/api/v1/sites/oslo/undrain", "operator", nil); w.Code != http.StatusOK {
		t.Errorf("undrain: got %d %s", w.Code, w.Body)
	}
	if nodes, _ := f.draining(); nodes != "" {
		t.Errorf("%q are drained, want none", nodes)
	}
}

func TestPolicy_IsSetOnceAndMatched(t *testing.T) {
	f := newFleet(t, 2)
	etag := f.request(http.MethodGet, "/api/v1/slices/1", "viewer", nil).Header().Get("ETag")
	set := func(key, match string, body any) *httptest.ResponseRecorder {
		return f.request(http.MethodPut, "/api/v1/slices/1/policy", "operator", body, "Idempotency-Key", key, "If-Match", match)
	}
	home := map[string]any{"home": "lima"}
	if w := set("k1", etag, home); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "slices/1") {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	row := func() geoconfig.SliceRow {
		return f.rows(geoconfig.Query{SliceIDs: []ids.Slice{1}}).Slices[0]
	}
	if p := row().Policy; p.Home != "lima" || p.Level != 2 {
		t.Errorf("got %+v, want the home alone changed", p)
	}
	if w := set("k2", etag, map[string]any{"level": 1}); w.Code != http.StatusPreconditionFailed {
		t.Errorf("an old ETag: got %d %s, want 412", w.Code, w.Body)
	}
	if w := set("k3", view.ETag(row().Revision), map[string]any{"home": "oslo"}); w.Code != http.StatusOK {
		t.Errorf("the new ETag: got %d %s", w.Code, w.Body)
	}
	if w := set("k1", etag, home); w.Code != http.StatusOK {
		t.Errorf("the first one repeated: got %d %s", w.Code, w.Body)
	}
	if p := row().Policy; p.Home != "oslo" || p.Level != 2 {
		t.Errorf("got %+v: the repetition changed it", p)
	}
	for _, body := range []any{map[string]any{}, map[string]any{"level": 3}, map[string]any{"home": "rome"}} {
		if w := f.request(http.MethodPut, "/api/v1/slices/1/policy", "operator", body); w.Code != http.StatusBadRequest {
			t.Errorf("%v: got %d %s, want 400", body, w.Code, w.Body)
		}
	}
}

func TestOverview_ShowsVersions(t *testing.T) {
	f := newOperated(t, 1)
	o := get[view.Overview](f, "/overview")
	if o.Feature.Level != version.Feature || o.Feature.Known != version.Feature || len(o.Versions) != 1 || o.Versions[0].Version != "v1" || len(o.Versions[0].Nodes) != 2 {
		t.Errorf("got %+v, %+v; want two nodes of one version", o.Feature, o.Versions)
	}
}

func TestWhatIf_TakesDrainsAndHomes(t *testing.T) {
	f := newOperated(t, 3)
	f.addNode()
	for _, change := range []map[string]any{{"kind": "drain_node", "node": "n1"}, {"kind": "drain_site", "site": "oslo"}, {"kind": "set_home", "slice": 1, "site": "lima"}} {
		w := f.request(http.MethodPost, "/api/v1/what-if", "viewer", map[string]any{"changes": []any{change}})
		var p view.Prediction
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK || p.Changed == 0 {
			t.Errorf("%v: got %d %s", change, w.Code, w.Body)
		}
	}
}
