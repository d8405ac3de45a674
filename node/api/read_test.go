package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
)

func TestOverview_SaysWhatIsWrongTheWorstFirst(t *testing.T) {
	f := newFleet(t, 30)
	o := get[view.Overview](f, "/overview")
	if o.Healthy || o.Counts.SlicesUnderProtected != 10 || o.Counts.NodesUp != 2 || o.Counts.Sessions == nil || *o.Counts.Sessions != 4 {
		t.Errorf("got %+v", o.Counts)
	}
	if !strings.Contains(o.Sentence, "slice 3 has 1 of 2 copies") || !strings.Contains(o.Sentence, "5 more slices") {
		t.Errorf("got %q", o.Sentence)
	}
	away := ids.Node("n1")
	f.away.Store(&away)
	f.forgetAnswers()
	o = get[view.Overview](f, "/overview")
	if o.Counts.SlicesUnavailable != 30 || o.Causes[0].Severity != "critical" || len(o.Freshness.Unreachable) != 1 {
		t.Errorf("with the active away: got %+v, %+v, %+v", o.Counts, o.Causes[0], o.Freshness)
	}
}

// A site at which no node stands yet is not one that does not answer.
func TestOverview_CountsSitesWithNodes(t *testing.T) {
	f := newFleet(t, 1)
	before := get[view.Overview](f, "/overview").Counts
	if w := f.request(http.MethodPost, "/api/v1/sites", "administrator", map[string]string{"name": "rome"}); w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if err := f.directory.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sites := get[view.List[view.Site]](f, "/sites").Items; len(sites) != before.Sites+1 {
		t.Fatalf("got %d sites, want %d", len(sites), before.Sites+1)
	}
	if after := get[view.Overview](f, "/overview").Counts; after.Sites != before.Sites || after.SitesUp != before.SitesUp {
		t.Errorf("got %d of %d sites up, want %d of %d", after.SitesUp, after.Sites, before.SitesUp, before.Sites)
	}
}

func TestNodes_KeepTheLastWordOfSilentOnes(t *testing.T) {
	f := newFleet(t, 1)
	before := get[view.List[view.Node]](f, "/nodes")
	away := ids.Node("n2")
	f.away.Store(&away)
	f.forgetAnswers()
	n := get[view.Node](f, "/nodes/n2")
	if n.State != "unreachable" || n.Live == nil || n.Live.UsedBytes != 40 || n.Live.AsOfAt.After(before.Freshness.AsOfAt.Add(1e9)) {
		t.Errorf("got %+v, %+v; want what it said before, with its age", n, n.Live)
	}
}

func TestLists_ShowTheConfiguration(t *testing.T) {
	f := newFleet(t, 3)
	sites := get[view.List[view.Site]](f, "/sites")
	if len(sites.Items) != 2 || sites.Items[1].Name != "oslo" || sites.Items[1].SlicesHome != 3 || sites.Items[1].NodesUp != 1 {
		t.Errorf("sites: got %+v", sites.Items)
	}
	if u := get[view.List[view.User]](f, "/users"); len(u.Items) != 1 || u.Items[0].Role != "administrator" {
		t.Errorf("users: got %+v", u.Items)
	}
	if x := get[view.List[view.Token]](f, "/tokens"); len(x.Items) != 1 || !x.Items[0].Expired {
		t.Errorf("tokens: got %+v", x.Items)
	}
	if x := get[view.List[view.Operation]](f, "/operations"); len(x.Items) != 1 || x.Items[0].Kind != "copy" || x.Items[0].Behind == nil || *x.Items[0].Behind != 9 {
		t.Errorf("operations: got %+v", x.Items)
	}
	if x := get[view.List[view.Client]](f, "/clients"); len(x.Items) != 2 || x.Items[1].Node != "n2" || x.Items[1].Site != "lima" || x.Total != 2 {
		t.Errorf("clients: got %+v", x.Items)
	}
	if x := get[view.Network](f, "/network"); len(x.Links) != 4 || x.Links[0].MeasuredMS == nil || *x.Links[0].MeasuredMS != 20 || x.Links[1].MeasuredMS != nil {
		t.Errorf("network: got %+v", x.Links)
	}
	if x := get[view.SliceDetail](f, "/slices/3"); x.Live == nil || !x.Live.Serving || len(x.WhyHere) != 2 || !strings.Contains(x.WhyHere[1].Text, "gets its state") {
		t.Errorf("slice: got %+v", x)
	}
}

func TestProbe_MeasuresWhatIsAskedFor(t *testing.T) {
	f := newFleet(t, 1)
	probe := func(body string) (int, view.Probed) {
		w := f.request(http.MethodPost, "/api/v1/network/probe", "operator", json.RawMessage(body))
		var p view.Probed
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return w.Code, p
	}
	code, p := probe(`{"from": "n2", "to": ["n1"], "times": 3}`)
	if code != http.StatusOK || p.FromSite != "lima" || len(p.Links) != 1 || len(p.Links[0].RoundTripsMS) != 3 || p.Links[0].RoundTripsMS[0] != 20 {
		t.Errorf("got %d, %+v", code, p)
	}
	if _, p := probe(`{"to": ["n2"]}`); p.From != "n1" || len(p.Links[0].RoundTripsMS) != 5 {
		t.Errorf("got %+v, want 5 round trips from the node that answers", p)
	}
	if code, _ := probe(`{"to": ["none"]}`); code != http.StatusNotFound {
		t.Errorf("to a node that is not there: got %d", code)
	}
	away := ids.Node("n2")
	f.away.Store(&away)
	if code, _ := probe(`{"from": "n2"}`); code != http.StatusBadGateway {
		t.Errorf("from a silent node: got %d", code)
	}
}

func TestActivity_AnswersWhileTheStoreIsAway(t *testing.T) {
	f := newFleet(t, 1)
	if a := get[view.ActivityList](f, "/activity"); len(a.Items) != 1 || a.Items[0].Action != "cluster.init" || !a.Freshness.GeoConfig.Reachable {
		t.Fatalf("got %+v", a)
	}
	f.store.away.Store(true)
	if a := get[view.ActivityList](f, "/activity"); len(a.Items) != 1 || a.Freshness.GeoConfig.Reachable {
		t.Errorf("with the store away: got %+v, want the old records and a word on it", a)
	}
	if d := get[view.Database](f, "/database"); d.Reachable || d.Name != "" {
		t.Errorf("got %+v, want it away and unknown", d)
	}
	if s := get[view.List[view.Site]](f, "/sites"); len(s.Items) != 2 {
		t.Errorf("with the store away: got %d sites, want 2", len(s.Items))
	}
}

// events reads a stream until it has seen as many events, as names and IDs.
func (f *fleet) events(url, last string, n int, begun func()) (names, numbers []string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("X-Role", "viewer")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for len(names) < n && lines.Scan() {
		switch word, value, _ := strings.Cut(lines.Text(), ": "); word {
		case "retry":
			begun()
		case "id":
			numbers = append(numbers, value)
		case "event":
			names = append(names, value)
		}
	}
	return names, numbers
}

func TestEvents_TellChangesAndResume(t *testing.T) {
	f := newFleet(t, 1)
	server := httptest.NewServer(f.api.Handler())
	defer server.Close()
	names, numbers := f.events(server.URL, "", 1, func() { f.directory.Learn(geoconfig.SliceRow{ID: 2, Epoch: 1, Active: "n1"}) })
	if len(names) != 1 || names[0] != "revision" {
		t.Fatalf("got %v, want revision", names)
	}
	f.directory.Learn(geoconfig.SliceRow{ID: 3, Epoch: 1, Active: "n1"})
	again, next := f.events(server.URL, numbers[0], 1, func() {})
	if len(again) != 1 || again[0] == "gap" || next[0] == numbers[0] {
		t.Errorf("resumed: got %v %v, want what came after %v", again, next, numbers)
	}
	if gap, _ := f.events(server.URL, "other-7", 1, func() {}); len(gap) != 1 || gap[0] != "gap" {
		t.Errorf("of another life: got %v, want gap", gap)
	}
}
