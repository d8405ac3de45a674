package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/server/named"
)

// newPast is the real list of snapshots of the answering node.
func newPast(f *fleet) *named.List {
	f.t.Helper()
	wall := func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	keys := atomic.Int64{}
	l, err := named.New(named.Options{Store: f.store, HLC: hlc.New(wall), Lease: time.Second, Wall: wall, Clock: boottime.Default(), Logger: slog.New(slog.DiscardHandler),
		Vouched: func() hlc.Time { return 0 }, Key: func(kind string) string { return fmt.Sprint(kind, keys.Add(1)) }})
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

// post orders a change as an administrator, under a key where there is one.
func (f *fleet) post(path, key string, body any) *httptest.ResponseRecorder {
	f.t.Helper()
	return f.request(http.MethodPost, "/api/v1"+path, "administrator", body, "Idempotency-Key", key)
}

// records are those of the audit log about an action, the newest first.
func (f *fleet) records(action string) (out []geoconfig.AuditRecord) {
	f.t.Helper()
	for _, a := range f.rows(geoconfig.Query{Audit: 50}).Audit {
		if a.Action == action {
			out = append(out, a)
		}
	}
	return out
}

func TestSnapshot_IsMadeOnceAndRecorded(t *testing.T) {
	f := newOperated(t, 1)
	if l := get[view.List[view.Snapshot]](f, "/snapshots"); len(l.Items) != 0 || l.Items == nil {
		t.Errorf("got %+v, want none", l)
	}
	body := map[string]any{"name": "before-upgrade", "keep_ms": 3_600_000}
	var made [2]view.Snapshot
	for i := range made {
		w := f.post("/snapshots", "k", body)
		if err := json.Unmarshal(w.Body.Bytes(), &made[i]); err != nil || w.Code != http.StatusOK {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	s := made[0]
	if s.Name != "before-upgrade" || s.By != "test" || time.Since(s.TakenAt).Abs() > time.Minute || s.ExpiresAt == nil || s.ExpiresAt.Sub(s.TakenAt) != time.Hour {
		t.Errorf("got %+v, want an hour of it, made by the account", s)
	}
	if made[1].TakenAt != s.TakenAt || made[1].Revision != s.Revision {
		t.Errorf("repeated: got %+v, want %+v", made[1], s)
	}
	if l := get[view.List[view.Snapshot]](f, "/snapshots"); l.Total != 1 || l.Items[0].Revision != s.Revision || *l.Items[0].ExpiresAt != *s.ExpiresAt {
		t.Errorf("got %+v, want the one", l)
	}
	r := f.records("snapshot.create")
	if len(r) != 1 || r[0].Who != "test" || r[0].Subject != "records/snapshot/before-upgrade" || !strings.Contains(r[0].Detail, "from 192.0.2.1") {
		t.Errorf("got %+v, want one record with who and from where", r)
	}
	if w := f.post("/snapshots", "other", body); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "choose another name, or delete that one") {
		t.Errorf("a name that is taken: got %d %s", w.Code, w.Body)
	}
}

func TestSnapshot_IsDeletedOnceAndMatched(t *testing.T) {
	f := newOperated(t, 1)
	for _, name := range []string{"first", "second"} {
		if w := f.post("/snapshots", name, map[string]any{"name": name}); w.Code != http.StatusOK {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	list := get[view.List[view.Snapshot]](f, "/snapshots").Items
	if len(list) != 2 || list[0].Name != "second" || list[0].ExpiresAt != nil {
		t.Fatalf("got %+v, want the newest first", list)
	}
	remove := func(key, match string) *httptest.ResponseRecorder {
		return f.request(http.MethodDelete, "/api/v1/snapshots/second", "administrator", nil, "Idempotency-Key", key, "If-Match", match)
	}
	if w := remove("1", view.ETag(list[1].Revision)); w.Code != http.StatusPreconditionFailed {
		t.Errorf("another ETag: got %d %s, want 412", w.Code, w.Body)
	}
	for range 2 {
		if w := remove("2", view.ETag(list[0].Revision)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "records/snapshot/second") {
			t.Errorf("its ETag: got %d %s", w.Code, w.Body)
		}
	}
	if w := remove("3", view.ETag(list[0].Revision)); w.Code != http.StatusNotFound {
		t.Errorf("deleted already: got %d %s, want 404", w.Code, w.Body)
	}
	if r := f.records("snapshot.delete"); len(r) != 1 || r[0].Who != "test" || !strings.Contains(r[0].Detail, "from 192.0.2.1") {
		t.Errorf("got %+v, want one record", r)
	}
	if l := get[view.List[view.Snapshot]](f, "/snapshots"); l.Total != 1 || l.Items[0].Name != "first" {
		t.Errorf("got %+v, want the other one", l)
	}
	if w := f.post("/snapshots", "second", map[string]any{"name": "second"}); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "deleted by now") {
		t.Errorf("the order that made it, repeated: got %d %s", w.Code, w.Body)
	}
}

func TestSnapshot_RefusesWhatCannotBe(t *testing.T) {
	f := newOperated(t, 1)
	for _, test := range []struct {
		body map[string]any
		code int
		says string
	}{
		{map[string]any{"name": "-1h"}, http.StatusBadRequest, "means a time or an age"},
		{map[string]any{"name": "2026-11-22"}, http.StatusBadRequest, "means a time or an age"},
		{map[string]any{"name": "a/b"}, http.StatusBadRequest, "is no name for a snapshot"},
		{map[string]any{"name": ""}, http.StatusUnprocessableEntity, "body.name"},
		{map[string]any{"name": strings.Repeat("a", 129)}, http.StatusUnprocessableEntity, "body.name"},
		{map[string]any{"name": "a", "keep_ms": -1}, http.StatusUnprocessableEntity, "body.keep_ms"},
		{map[string]any{"name": "a", "colour": "red"}, http.StatusUnprocessableEntity, "body"},
		{map[string]any{}, http.StatusUnprocessableEntity, "body"},
	} {
		if w := f.post("/snapshots", "k", test.body); w.Code != test.code || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%v: got %d %s, want %d that says %q", test.body, w.Code, w.Body, test.code, test.says)
		}
	}
	if w := f.post("/snapshots", "", map[string]any{"name": "a", "dry_run": true}); w.Code != http.StatusOK {
		t.Errorf("a dry run: got %d %s", w.Code, w.Body)
	}
	if l := get[view.List[view.Snapshot]](f, "/snapshots"); l.Total != 0 {
		t.Errorf("got %+v, want that nothing refused or dry is there", l)
	}
	w := f.request(http.MethodDelete, "/api/v1/snapshots/none", "administrator", nil)
	var p problem.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusNotFound || p.Code != "not_found" || !strings.Contains(p.Detail, "cartwheel snapshot list") {
		t.Errorf("a name that is not there: got %d %s", w.Code, w.Body)
	}
	for _, role := range []string{"viewer", "operator"} {
		if w := f.request(http.MethodPost, "/api/v1/snapshots", role, map[string]any{"name": "a"}); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "administrator") {
			t.Errorf("as %s: got %d %s", role, w.Code, w.Body)
		}
	}
	if w := newFleet(t, 1).post("/snapshots", "", map[string]any{"name": "a"}); w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "update the nodes") {
		t.Errorf("before all nodes know snapshots: got %d %s", w.Code, w.Body)
	}
}

func TestSchedule_IsSetListedAndEnded(t *testing.T) {
	f := newOperated(t, 1)
	hourly := map[string]any{"name": "hourly", "every_ms": 3_600_000, "keep_ms": 7_200_000}
	for range 2 {
		if w := f.post("/schedules", "k", hourly); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "records/snapshot/hourly") {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	if w := f.post("/snapshots", "", map[string]any{"name": "single"}); w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	l := get[view.List[view.Schedule]](f, "/schedules")
	if l.Total != 1 || l.Items[0].By != "test" || l.Items[0].EveryMS != 3_600_000 || l.Items[0].KeepMS != 7_200_000 || l.Items[0].Most != 3 {
		t.Fatalf("got %+v", l)
	}
	if next := l.Items[0].NextAt; next.Minute() != 0 || time.Until(next) > time.Hour || time.Until(next) < 0 {
		t.Errorf("the next one is due at %v, want the next full hour", next)
	}
	for _, test := range []struct {
		body map[string]any
		code int
		says string
	}{
		{hourly, http.StatusConflict, "a schedule of this name"},
		{map[string]any{"name": "x", "every_ms": 90_000, "keep_ms": 7_200_000}, http.StatusBadRequest, "choose whole minutes"},
		{map[string]any{"name": "x", "every_ms": 3_600_000, "keep_ms": 60_000}, http.StatusBadRequest, "for as long at least"},
		{map[string]any{"name": "x", "every_ms": 60_000, "keep_ms": 24 * 3_600_000}, http.StatusRequestEntityTooLarge, "less often"},
		{map[string]any{"name": "x", "keep_ms": 60_000}, http.StatusUnprocessableEntity, "every_ms"},
	} {
		if w := f.post("/schedules", "", test.body); w.Code != test.code || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%v: got %d %s, want %d that says %q", test.body, w.Code, w.Body, test.code, test.says)
		}
	}
	if w := f.post("/schedules", "", map[string]any{"name": "x", "every_ms": 60_000, "keep_ms": 60_000, "dry_run": true}); w.Code != http.StatusOK {
		t.Errorf("a dry run: got %d %s", w.Code, w.Body)
	}
	if l := get[view.List[view.Schedule]](f, "/schedules"); l.Total != 1 {
		t.Errorf("got %+v, want that nothing refused or dry is there", l)
	}
	remove := func(path string) *httptest.ResponseRecorder {
		return f.request(http.MethodDelete, "/api/v1"+path, "administrator", nil, "Idempotency-Key", "r")
	}
	if w := remove("/snapshots/hourly"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "is a schedule") {
		t.Errorf("as a snapshot: got %d %s", w.Code, w.Body)
	}
	if w := remove("/schedules/single"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "is a snapshot") {
		t.Errorf("a snapshot as a schedule: got %d %s", w.Code, w.Body)
	}
	for range 2 {
		if w := remove("/schedules/hourly"); w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if l := get[view.List[view.Schedule]](f, "/schedules"); l.Total != 0 || l.Items == nil {
		t.Errorf("got %+v, want none", l)
	}
	if made, ended := f.records("schedule.create"), f.records("schedule.delete"); len(made) != 1 || len(ended) != 1 || ended[0].Who != "test" {
		t.Errorf("got %+v and %+v, want a record of each", made, ended)
	}
}

func TestSnapshots_AreListedWithoutTheStore(t *testing.T) {
	f := newOperated(t, 1)
	if w := f.post("/snapshots", "", map[string]any{"name": "kept"}); w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	f.store.away.Store(true)
	if l := get[view.List[view.Snapshot]](f, "/snapshots"); l.Total != 1 || l.Freshness.GeoConfig.Reachable {
		t.Errorf("got %+v, want what the node knows", l)
	}
	if w := f.post("/snapshots", "", map[string]any{"name": "other"}); w.Code != http.StatusBadGateway {
		t.Errorf("one made: got %d %s, want 502", w.Code, w.Body)
	}
	empty := newFleet(t, 1)
	empty.store.away.Store(true)
	for _, path := range []string{"/snapshots", "/schedules"} {
		if w := empty.request(http.MethodGet, "/api/v1"+path, "viewer", nil); w.Code != http.StatusBadGateway {
			t.Errorf("%s, with nothing read before: got %d", path, w.Code)
		}
	}
}
