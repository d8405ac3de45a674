package metrics

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/sharing"
)

// figures is a node whose figures are all different.
func figures() Source {
	return Source{
		Node: func(context.Context) status.Node {
			return status.Node{ID: "n1", Site: "oslo", Cluster: "c", Version: "v1", UptimeNS: 90 * time.Second,
				CapacityBytes: 1000, UsedBytes: 300, FreeBytes: 600, ReadOnly: true, Disk: &status.Disk{ChunkBytes: 71, MetadataBytes: 72, LiveBytes: 73, RetainedBytes: 74},
				Parts:    status.Parts{SlicesActive: 4, SlicesStandby: 5, SlicesJunior: 6},
				Sessions: 7, ObjectLeases: 8, GeoConfig: status.GeoConfig{AwayNS: 12 * time.Second},
				Findings: make([]status.Finding, 2),
				Scrub: &status.Scrub{Running: true, DoneShare: 0.25, EndedAtNS: 82e9, LostChunks: 89, Different: make([]status.DifferentState, 1),
					Total: status.ScrubCounts{ReadBytes: 81, Damaged: 83, Missing: 84, Repaired: 85, Unneeded: 86, ReadErrors: 87, Different: 88}},
				Peers: []status.Peer{{ID: "n2", Site: "rome", Connected: true, RTTNS: 40 * time.Millisecond}, {ID: "n3", Site: "lima"}}}
		},
		Leading: func() []geoconfig.SliceRow {
			normal := geoconfig.Member{State: geoconfig.Normal}
			return []geoconfig.SliceRow{
				{Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{normal, normal}},
				{Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{normal, {State: geoconfig.Failed}}},
			}
		},
		JournalBytes: func() int64 { return 55 },
		Shared: func() sharing.Counts {
			return sharing.Counts{Hits: 61, Misses: 62, ServedBytes: 63, FetchedBytes: 64, KeptBytes: 65}
		},
		Sent: func() map[ids.Site]budget.Sent {
			s := budget.Sent{Rate: 66}
			s.Counts[budget.Repair] = budget.Counts{Bytes: 67, Waited: 68 * time.Second}
			return map[ids.Site]budget.Sent{"rome": s, "lima": {}}
		},
		Turn: func(context.Context) error { return nil },
	}
}

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

func TestHandler_ShowsEachFigure(t *testing.T) {
	r := New()
	r.Requests().Answered(method.Operate, 2*time.Millisecond, fault.None)
	r.Requests().Answered(method.Operate, 2*time.Second, fault.Overloaded)
	r.Requests().Answered(250, time.Millisecond, fault.Invalid)
	code, text := get(t, r.Handler(figures()), "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, text)
	}
	for _, want := range []string{
		`cartwheel_node_info{cluster="c",node="n1",site="oslo",version="v1"} 1`,
		"cartwheel_uptime_seconds 90", "cartwheel_capacity_bytes 1000", "cartwheel_used_bytes 300", "cartwheel_disk_free_bytes 600",
		"cartwheel_chunk_bytes 71", "cartwheel_metadata_bytes 72", "cartwheel_live_most_bytes 73", "cartwheel_retained_least_bytes 74",
		"cartwheel_read_only 1", "cartwheel_journal_bytes 55",
		`cartwheel_slices{role="active"} 4`, `cartwheel_slices{role="standby"} 5`, `cartwheel_slices{role="junior"} 6`,
		"cartwheel_slices_underprotected 1", "cartwheel_sessions 7", "cartwheel_object_leases 8",
		"cartwheel_geo_config_reachable 0", "cartwheel_geo_config_away_seconds 12", "cartwheel_site_findings 2",
		`cartwheel_peer_connected{peer="n2",peer_site="rome"} 1`, `cartwheel_peer_connected{peer="n3",peer_site="lima"} 0`,
		`cartwheel_peer_rtt_seconds{peer="n2",peer_site="rome"} 0.04`,
		`cartwheel_request_seconds_count{method="operate"} 2`, `cartwheel_request_seconds_bucket{method="operate",le="0.0025"} 1`,
		`cartwheel_request_failures_total{kind="` + fault.Overloaded.String() + `",method="operate"} 1`,
		`cartwheel_request_seconds_count{method="unknown"} 1`,
		`cartwheel_shared_chunks_total{result="hit"} 61`, `cartwheel_shared_chunks_total{result="miss"} 62`,
		"cartwheel_shared_served_bytes_total 63", "cartwheel_shared_fetched_bytes_total 64", "cartwheel_shared_kept_bytes 65",
		`cartwheel_site_sent_bytes_total{class="repair",to="rome"} 67`, `cartwheel_site_waited_seconds_total{class="repair",to="rome"} 68`,
		`cartwheel_site_sent_bytes_total{class="foreground",to="rome"} 0`, `cartwheel_site_budget_bytes_per_second{to="rome"} 66`,
		"cartwheel_scrub_read_bytes_total 81", "cartwheel_scrub_last_end_seconds 82", "cartwheel_scrub_done_ratio 0.25",
		`cartwheel_scrub_found_total{what="damaged"} 83`, `cartwheel_scrub_found_total{what="missing"} 84`, `cartwheel_scrub_found_total{what="repaired"} 85`,
		`cartwheel_scrub_found_total{what="unneeded"} 86`, `cartwheel_scrub_found_total{what="read_error"} 87`, `cartwheel_scrub_found_total{what="different"} 88`,
		"cartwheel_scrub_lost_chunks 89", "cartwheel_scrub_different_slices 1",
		"go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, `cartwheel_peer_rtt_seconds{peer="n3"`) {
		t.Error("a peer that is not connected has a round trip")
	}
	if strings.Contains(text, `cartwheel_site_budget_bytes_per_second{to="lima"`) {
		t.Error("a site without a budget has a rate")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestHandler_SaysWhetherTheNodeIsReady(t *testing.T) {
	s := figures()
	var stuck error
	s.Turn = func(context.Context) error { return stuck }
	h := New().Handler(s)
	if code, text := get(t, h, "/readyz"); code != http.StatusOK || text != "ready\n" {
		t.Errorf("%d %q", code, text)
	}
	stuck = fault.E(fault.TimedOut, "", "", "no turn")
	if code, text := get(t, h, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "no turn") {
		t.Errorf("%d %q of a loop that does not turn", code, text)
	}
	if code, _ := get(t, h, "/healthz"); code != http.StatusOK {
		t.Errorf("%d: a node that is not ready is alive", code)
	}
	if code, _ := get(t, h, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("%d: the profiler shows memory, and is not for everybody", code)
	}
}

// TestMonitoring_NamesFiguresThatThereAre reads the rules, the dashboard and the
// page for operators.
func TestMonitoring_NamesFiguresThatThereAre(t *testing.T) {
	r := New()
	r.Requests().Answered(method.Operate, time.Millisecond, fault.Overloaded)
	_, shown := get(t, r.Handler(figures()), "/metrics")
	docs := filepath.Join("..", "..", "..", "docs")
	name := regexp.MustCompile(`\b(cartwheel|process|go)_[a-z_]+[a-z]\b`)
	for _, file := range []string{"monitoring.md", "monitoring/alerts.yaml", "monitoring/dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllString(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names only %q", file, found)
		}
		for _, n := range found {
			if !strings.Contains(shown, "\n"+n+" ") && !strings.Contains(shown, "\n"+n+"{") && !strings.Contains(shown, "# TYPE "+n+" ") {
				t.Errorf("%s names %s, which no node shows", file, n)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(docs, "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(shown, "\n") {
		if n, ok := strings.CutPrefix(line, "# TYPE cartwheel_"); ok {
			if n = "cartwheel_" + strings.Fields(n)[0]; !strings.Contains(string(page), "`"+n+"`") {
				t.Errorf("monitoring.md does not explain %s", n)
			}
		}
	}
}

func TestAlerts_SayWhatToDo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "monitoring", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Labels           map[string]string
				Annotations      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 5 {
		t.Fatalf("got %+v", file)
	}
	for _, r := range file.Groups[0].Rules {
		if _, err := time.ParseDuration(r.For); err != nil || r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
			t.Errorf("the rule %q lacks something: %+v", r.Alert, r)
		}
		if strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
			t.Errorf("%s: %s", r.Alert, r.Expr)
		}
	}
}
