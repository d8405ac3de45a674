package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/api"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/cluster"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.json as the code has it")

// fleet is a cluster whose configuration is real and whose nodes say what the test
// has them say.
type fleet struct {
	t         testing.TB
	store     *leaving
	directory *cluster.Directory
	away      atomic.Pointer[ids.Node] // does not answer
	api       *api.Server
	ahead     atomic.Int64 // how far the clock was put forward
	past      pastOf
}

// forgetAnswers lets so much time pass that the nodes are asked again.
func (f *fleet) forgetAnswers() { f.ahead.Add(int64(time.Minute)) }

// leaving is a store that a test can take away.
type leaving struct {
	geoconfig.Store
	away atomic.Bool
}

func (s *leaving) left() error {
	if s.away.Load() {
		return fault.E(fault.Unreachable, "api_test.leaving", "geo-config", "no connection")
	}
	return nil
}

func (s *leaving) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := s.left(); err != nil {
		return geoconfig.Rows{}, err
	}
	return s.Store.Read(ctx, q)
}

func (s *leaving) Properties(ctx context.Context) (geoconfig.Properties, error) {
	if err := s.left(); err != nil {
		return geoconfig.Properties{}, err
	}
	return s.Store.Properties(ctx)
}

func (f *fleet) silent(id ids.Node) error {
	if a := f.away.Load(); a != nil && *a == id {
		return fault.E(fault.Unreachable, "api_test.fleet", string(id), "no connection")
	}
	return nil
}

func (f *fleet) Status(_ context.Context, id ids.Node) (status.Node, error) {
	s := status.Node{ID: id, Version: "v1", CapacityBytes: 100, UsedBytes: 40, FreeBytes: 60, Sessions: 2, GeoConfig: status.GeoConfig{Reachable: true}}
	f.past.tell(&s)
	return s, f.silent(id)
}

func (f *fleet) Net(_ context.Context, id ids.Node) (status.Net, error) {
	return status.Net{ID: id, Links: []status.Link{{To: "n1", Site: "oslo", MeasuredNS: 20 * time.Millisecond, Samples: 3}, {To: "n2"}}}, f.silent(id)
}

func (f *fleet) Probe(_ context.Context, from ids.Node, to []ids.Node, times int) (status.Net, error) {
	out := status.Net{ID: from}
	for _, id := range to {
		out.Links = append(out.Links, status.Link{To: id, ProbeNS: slices.Repeat([]time.Duration{20 * time.Millisecond}, times)})
	}
	return out, f.silent(from)
}

func (f *fleet) Slices(_ context.Context, id ids.Node) ([]status.Slice, error) {
	var out []status.Slice
	for _, r := range f.directory.Slices() {
		out = append(out, status.Slice{SliceRow: r, Serving: r.Active == id, Commit: 9, Objects: 4})
	}
	return out, f.silent(id)
}

func (f *fleet) HandOver(_ context.Context, row geoconfig.SliceRow, to ids.Node) error {
	f.directory.Learn(geoconfig.SliceRow{ID: row.ID, Epoch: row.Epoch + 1, Active: to, Members: row.Members, Policy: row.Policy})
	return nil
}

func (f *fleet) Clients(_ context.Context, id ids.Node) ([]status.Client, error) {
	return []status.Client{{User: "ann", Name: "laptop:/mnt", Site: "oslo"}}, f.silent(id)
}

func (f *fleet) Ready(context.Context) error { return nil }

// headerAuth believes the header of a test.
type headerAuth struct{}

func (headerAuth) Authenticate(r *http.Request) (api.Principal, error) {
	for _, role := range []api.Role{api.Viewer, api.Operator, api.Administrator} {
		if r.Header.Get("X-Role") == role.String() {
			return api.Principal{Name: "test", Role: role}, nil
		}
	}
	return api.Principal{}, fault.E(fault.Unauthorized, "api_test.Authenticate", "", "no account")
}

// newFleet starts two nodes at two sites with some slices.
func newFleet(t testing.TB, slices int) *fleet {
	t.Helper()
	f := &fleet{t: t, store: &leaving{Store: inmem.New()}}
	ctx := t.Context()
	f.apply(geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: "c", Generation: 1},
		Sites: []geoconfig.Site{{Name: "oslo", Location: "Oslo, Norway"}, {Name: "lima"}},
		Users: []geoconfig.User{{Name: "ann", Key: "k1", UID: 1, GIDs: []uint32{1}, Admin: true}, {Name: "token", Key: "k2", Join: &geoconfig.Join{Site: "oslo", ExpiresNS: 1}}},
		Nodes: []geoconfig.Node{{ID: "n1", Site: "oslo", Incarnation: 1}, {ID: "n2", Site: "lima", Incarnation: 1}},
		Audit: []geoconfig.AuditRecord{{AtNS: 5, Who: "ann", Action: "cluster.init", Subject: "cluster/cluster"}}})
	for from := 1; from <= slices; from += 500 {
		b := geoconfig.Batch{Key: fmt.Sprint("slices", from)}
		for id := from; id < from+500 && id <= slices; id++ {
			b.Slices = append(b.Slices, geoconfig.SliceSwap{Row: sliceRow(id)})
		}
		f.apply(b)
	}
	var err error
	if f.directory, err = cluster.New(cluster.Options{Store: f.store}); err != nil {
		t.Fatal(err)
	}
	if err := f.directory.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	f.api = api.New(api.Options{Self: "n1", Site: "oslo", Version: "v1", Directory: f.directory, Store: f.store, Asker: f, Auth: headerAuth{}, People: people.New(people.Options{Store: f.store}),
		Past: newPast(f), Admin: f.store, GeoConfig: []string{"/ip4/127.0.0.1/tcp/1/p2p/ID"},
		Wall:     func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) },
		Settings: []view.Setting{{Key: "site", Value: "oslo"}, {Key: "lease", Value: "2s"}, {Key: "failed_after", Value: "10m0s"}}})
	t.Cleanup(func() { _ = f.api.Close() })
	return f
}

// sliceRow is a slice of two copies, of which every third lacks one.
func sliceRow(id int) geoconfig.SliceRow {
	r := geoconfig.SliceRow{ID: ids.Slice(id), Epoch: 1, Active: "n1", Policy: geoconfig.Policy{Home: "oslo", Level: 2, Kind: geoconfig.Ordinary},
		Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal}, {Node: "n2", State: geoconfig.Normal}}}
	if id%3 == 0 {
		r.Members[1].State = geoconfig.Migrating
	}
	return r
}

func (f *fleet) apply(b geoconfig.Batch) {
	f.t.Helper()
	if _, err := f.store.Apply(f.t.Context(), b); err != nil {
		f.t.Fatal(err)
	}
}

// request sends one in a role, and returns the answer.
func (f *fleet) request(method, path, role string, body any, headers ...string) *httptest.ResponseRecorder {
	f.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(f.t.Context(), method, path, bytes.NewReader(encoded))
	if body == nil {
		r = httptest.NewRequestWithContext(f.t.Context(), method, path, nil)
	}
	r.Host = "127.0.0.1:7490"
	r.Header.Set("X-Role", role)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.api.Handler().ServeHTTP(w, r)
	return w
}

// get reads a route as a viewer into out.
func get[T any](f *fleet, path string) (out T) {
	f.t.Helper()
	w := f.request(http.MethodGet, "/api/v1"+path, "administrator", nil)
	if w.Code != http.StatusOK {
		f.t.Fatalf("%s: got %d, %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		f.t.Fatalf("%s: %v", path, err)
	}
	return out
}

func TestOpenAPI_IsCurrent(t *testing.T) {
	raw, err := newFleet(t, 1).api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Indent(&want, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if *rewrite {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("openapi.json")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("openapi.json is not as the code has it (%v): run this test with -rewrite", err)
	}
}

// described are the routes that the API has, by its own description, with the least
// role that each names there.
func described(t *testing.T, f *fleet) map[string]string {
	t.Helper()
	raw, err := f.api.OpenAPI()
	var spec struct {
		Paths map[string]map[string]struct{ Description string }
	}
	if err = errors.Join(err, json.Unmarshal(raw, &spec)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for path, methods := range spec.Paths {
		for method, op := range methods {
			role, _, _ := strings.Cut(strings.TrimPrefix(op.Description, "Role: "), ".")
			out[strings.ToUpper(method)+" "+path] = role
		}
	}
	return out
}

func TestRoutes_RefuseLowerRoles(t *testing.T) {
	f := newFleet(t, 1)
	ranks := map[string]int{"": 0, "viewer": 1, "operator": 2, "administrator": 3}
	routes := described(t, f)
	if len(routes) < 18 {
		t.Fatalf("got %d routes, want all", len(routes))
	}
	for route, needs := range routes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{name}", "none", "{id}", "1").Replace(path)
		if needs != "public" && ranks[needs] == 0 {
			t.Errorf("%s needs role %q, which no one has", route, needs)
		}
		for role, rank := range ranks {
			if strings.HasSuffix(path, "/events") && rank >= ranks[needs] {
				continue // it does not end; TestEvents reads it
			}
			w := f.request(method, path, role, nil)
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			if want := needs != "public" && rank < ranks[needs]; refused != want {
				t.Errorf("%s as %q: got %d, want it refused: %v", route, role, w.Code, want)
			}
			if refused && (w.Header().Get("Content-Type") != "application/problem+json" || role != "" && !strings.Contains(w.Body.String(), needs)) {
				t.Errorf("%s as %q: the refusal does not name the role: %s", route, role, w.Body)
			}
		}
	}
}

func TestGuard_RefusesOtherHostsAndOrigins(t *testing.T) {
	f := newFleet(t, 1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
	r.Host = "rebound.example"
	w := httptest.NewRecorder()
	f.api.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host: got %d, want 421", w.Code)
	}
	w = f.request(http.MethodPost, "/api/v1/sites", "administrator", map[string]string{}, "Sec-Fetch-Site", "cross-site", "Origin", "https://elsewhere.example")
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "elsewhere.example") {
		t.Errorf("another origin: got %d %s, want 403 with its name", w.Code, w.Body)
	}
}

func TestProblem_NamesCodeSubjectAndRequest(t *testing.T) {
	w := newFleet(t, 1).request(http.MethodGet, "/api/v1/slices/99", "viewer", nil)
	var p problem.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if w.Code != 404 || p.Code != "not_found" || p.Subject != "slices/99" || p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
		t.Errorf("got %d %+v", w.Code, p)
	}
	w = newFleet(t, 1).request(http.MethodGet, "/api/v1/slices?limit=0", "viewer", nil)
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if p.Code != "invalid" || len(p.Fields) == 0 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a bad value: got %d %+v", w.Code, p)
	}
}
