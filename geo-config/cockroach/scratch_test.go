package cockroach_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/conformance"
)

func TestScratch_LeavesALiveStoreAsItIs(t *testing.T) {
	o := scratch(t, shared.URL(t))
	live := open(t, o)
	rev := apply(t, live, first())
	s, err := cockroach.NewScratch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range conformance.Check(t.Context(), func(ctx context.Context) (geoconfig.Store, error) { return s.Open(ctx) }) {
		if len(r.Failures) > 0 {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
	empty, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if took, err := cockroach.Measure(t.Context(), empty, 3, time.Now); err != nil || took <= 0 {
		t.Errorf("got %v, %v", took, err)
	}
	empty.Close()
	if err := s.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var left int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'cartwheel_scratch_%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d schemas are left, %v", left, err)
	}
	if rows, err := live.Read(t.Context(), geoconfig.Query{}); err != nil || rows.Revision != rev {
		t.Errorf("the live store is at revision %d, %v, want %d", rows.Revision, err, rev)
	}
}

func TestInspect_SaysWhatTheDatabaseHas(t *testing.T) {
	features, err := schema.Inspect(t.Context(), connect(t, scratch(t, shared.URL(t)).Options))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]schema.Feature{}
	for _, f := range features {
		got[f.Name] = f
	}
	if f := got["database"]; !f.Supported || !strings.HasPrefix(f.Detail, "PostgreSQL ") {
		t.Errorf("got %+v", f)
	}
	if f := got["tables"]; !f.Supported || !strings.HasPrefix(f.Detail, "version 2 in schema scratch_") {
		t.Errorf("got %+v", f)
	}
	if f := got["durable commits"]; f.Supported || !f.Needed || !strings.Contains(f.Detail, "fsync is off") {
		t.Errorf("a server without fsync: got %+v", f)
	}
	if f := got["regions"]; f.Supported || f.Needed {
		t.Errorf("got %+v", f)
	}
}
