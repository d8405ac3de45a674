package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/api"
	"cartwheel.dev/node/api/view"
)

// sites reads the sites' rows from the store, and the newest audit record.
func (f *fleet) sites() (map[string]geoconfig.Site, geoconfig.AuditRecord) {
	f.t.Helper()
	rows, err := f.store.Read(f.t.Context(), geoconfig.Query{Sites: true, Audit: 1})
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]geoconfig.Site{}
	for _, s := range rows.Sites {
		out[string(s.Name)] = s
	}
	return out, rows.Audit[0]
}

func TestChange_IsMadeOnceAndRecorded(t *testing.T) {
	f := newFleet(t, 1)
	body := map[string]string{"name": "rome", "location": "Rome"}
	for range 2 {
		if w := f.request(http.MethodPost, "/api/v1/sites", "administrator", body, "Idempotency-Key", "k"); w.Code != http.StatusOK {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	rows, record := f.sites()
	if rows["rome"].Location != "Rome" || record.Number != 2 || record.Who != "test" || record.Action != "site.add" || !strings.Contains(record.Detail, "from 192.0.2.1") {
		t.Errorf("got %+v, %+v; want one record with who and from where", rows["rome"], record)
	}
	if w := f.request(http.MethodPost, "/api/v1/sites", "administrator", body, "Idempotency-Key", "other"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"exists"`) {
		t.Errorf("a name that is taken: got %d %s", w.Code, w.Body)
	}
}

func TestChange_RefusesAStaleRevision(t *testing.T) {
	f := newFleet(t, 1)
	etag := f.request(http.MethodGet, "/api/v1/sites/oslo", "viewer", nil).Header().Get("ETag")
	set := func(where, match, key string) int {
		return f.request(http.MethodPut, "/api/v1/sites/oslo", "administrator", map[string]string{"location": where}, "If-Match", match, "Idempotency-Key", key).Code
	}
	if code := set("first", etag, "1"); code != http.StatusOK {
		t.Fatalf("got %d", code)
	}
	if code := set("second", etag, "2"); code != http.StatusPreconditionFailed {
		t.Errorf("an old ETag: got %d, want 412", code)
	}
	if code := set("first", etag, "1"); code != http.StatusOK {
		t.Errorf("the first one repeated: got %d, want 200", code)
	}
	if code := set("third", "nonsense", "3"); code != http.StatusBadRequest {
		t.Errorf("no ETag: got %d, want 400", code)
	}
	if rows, _ := f.sites(); rows["oslo"].Location != "first" {
		t.Errorf("got %+v", rows["oslo"])
	}
}

func TestChange_RemovesOnlyWhatNothingNeeds(t *testing.T) {
	f := newFleet(t, 1)
	for path, want := range map[string]string{
		"/sites/oslo": "has nodes", "/nodes/n1": "member of slices", "/users/ann": "last administrator", "/sites/none": "is no site", "/nodes/none": "is no node",
	} {
		if w := f.request(http.MethodDelete, "/api/v1"+path, "administrator", nil); w.Code < 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want %q", path, w.Code, w.Body, want)
		}
	}
	if w := f.request(http.MethodDelete, "/api/v1/tokens/token", "administrator", nil); w.Code != http.StatusOK {
		t.Errorf("a token: got %d %s", w.Code, w.Body)
	}
}

func TestChange_UsersTokensAndHandOver(t *testing.T) {
	f := newFleet(t, 1)
	w := f.request(http.MethodPost, "/api/v1/users", "administrator", map[string]any{"name": "bob", "key": "12D3KooWEZAuHcTVbWf2YZT3GTFcMCZ9XqQcNTtEKm4ZHmkQ2Bbr", "uid": 7, "gids": []int{7}, "role": "user"})
	if w.Code != http.StatusOK {
		t.Fatalf("user: got %d %s", w.Code, w.Body)
	}
	if w := f.request(http.MethodPut, "/api/v1/users/bob/role", "administrator", map[string]string{"role": "administrator"}); w.Code != http.StatusOK {
		t.Errorf("role: got %d %s", w.Code, w.Body)
	}
	w = f.request(http.MethodPost, "/api/v1/tokens", "administrator", map[string]any{"site": "oslo", "expires_ms": 60000})
	var token api.NewToken
	if err := json.Unmarshal(w.Body.Bytes(), &token); err != nil || !strings.HasPrefix(token.Token, "cartwheel-join-") {
		t.Errorf("token: got %d %s", w.Code, w.Body)
	}
	if w := f.request(http.MethodPost, "/api/v1/slices/1/hand-over", "operator", map[string]string{"node": "n2"}); w.Code != http.StatusOK {
		t.Errorf("hand-over: got %d %s", w.Code, w.Body)
	}
	if r, _ := f.directory.Slice(1); r.Active != "n2" {
		t.Errorf("the active is %s, want n2", r.Active)
	}
	if _, record := f.sites(); record.Action != "slice.hand-over" || record.Who != "test" {
		t.Errorf("got %+v", record)
	}
}

func TestWhatIf_PredictsTheLossOfASite(t *testing.T) {
	f := newFleet(t, 3)
	w := f.request(http.MethodPost, "/api/v1/what-if", "viewer", map[string]any{"changes": []any{map[string]any{"kind": "lose_site", "site": "oslo"}}})
	var p view.Prediction
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if p.Before.Slices != 3 || p.Changed == 0 || len(p.Sites) == 0 {
		t.Errorf("got %+v", p)
	}
	if w := f.request(http.MethodPost, "/api/v1/what-if", "viewer", map[string]any{"changes": []any{map[string]any{"kind": "lose_site", "site": "none"}}}); w.Code != http.StatusNotFound {
		t.Errorf("a site that is not there: got %d", w.Code)
	}
}

func TestChange_RepeatsAnswerAsTheFirst(t *testing.T) {
	f := newFleet(t, 1)
	for path, body := range map[string]any{"/sites": map[string]string{"name": "rome"}, "/users": map[string]any{"name": "bob", "key": "12D3KooWEZAuHcTVbWf2YZT3GTFcMCZ9XqQcNTtEKm4ZHmkQ2Bbr", "uid": 7, "gids": []int{7}, "role": "user"}} {
		if w := f.request(http.MethodPost, "/api/v1"+path, "administrator", body); w.Code != http.StatusOK {
			t.Fatalf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/sites/rome", "/users/bob", "/tokens/token"} {
		var answers []string
		for range 2 {
			answers = append(answers, f.request(http.MethodDelete, "/api/v1"+path, "administrator", nil, "Idempotency-Key", "k").Body.String())
		}
		if answers[0] != answers[1] || !strings.Contains(answers[0], `"subject"`) {
			t.Errorf("%s: got %q", path, answers)
		}
		if w := f.request(http.MethodDelete, "/api/v1"+path, "administrator", nil, "Idempotency-Key", "other"); w.Code != http.StatusNotFound {
			t.Errorf("%s with another key: got %d %s, want 404", path, w.Code, w.Body)
		}
	}
}

func TestToken_IsShownOnce(t *testing.T) {
	f := newFleet(t, 1)
	body := map[string]any{"site": "oslo", "expires_ms": 60000}
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		if w := f.request(http.MethodPost, "/api/v1/tokens", "administrator", body, "Idempotency-Key", "k"); w.Code != want {
			t.Errorf("request %d: got %d %s, want %d", i, w.Code, w.Body, want)
		}
	}
	if _, record := f.sites(); record.Action != "token.create" || !strings.Contains(record.Detail, "from 192.0.2.1") {
		t.Errorf("got %+v, want one record with the address", record)
	}
}

func TestHandOver_IsRecordedOnce(t *testing.T) {
	f := newFleet(t, 1)
	order := func(node string, headers ...string) int {
		return f.request(http.MethodPost, "/api/v1/slices/1/hand-over", "operator", map[string]string{"node": node}, headers...).Code
	}
	if code := order("", "Idempotency-Key", "k"); code != http.StatusBadRequest {
		t.Errorf("a key without a node: got %d, want 400", code)
	}
	if code := order("n2", "If-Match", `"9999"`); code != http.StatusPreconditionFailed {
		t.Errorf("a stale ETag: got %d, want 412", code)
	}
	_, before := f.sites()
	for range 2 {
		if code := order("n2", "Idempotency-Key", "k"); code != http.StatusOK {
			t.Errorf("got %d", code)
		}
	}
	if _, record := f.sites(); record.Number != before.Number+1 || !strings.Contains(record.Detail, "from 192.0.2.1") {
		t.Errorf("got %+v after %d, want one record with the address", record, before.Number)
	}
}
