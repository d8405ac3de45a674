package cockroach_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/storetest/postgrestest"
)

func first() geoconfig.Batch {
	return geoconfig.Batch{Key: "first", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}, Sites: []geoconfig.Site{{Name: "paris"}, {Name: "tokyo"}}}
}

// addSite is a batch that makes one site and one audit record.
func addSite(name string) geoconfig.Batch {
	return geoconfig.Batch{Key: "add-" + name, Sites: []geoconfig.Site{{Name: ids.Site(name)}}, Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "site.add", Subject: name}}}
}

func apply(t *testing.T, s geoconfig.Store, b geoconfig.Batch) ids.Revision {
	t.Helper()
	rev, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatalf("Apply %s: %v", b.Key, err)
	}
	return rev
}

// execute runs statements behind the stores' back.
func execute(t *testing.T, o cockroach.Options, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range append([]string{`SET search_path TO "` + o.Schema + `"`}, statements...) {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// Each batch makes one site, so a follower that meets every revision once, in
// their order, has missed none.
func TestFollow_MissesNoRevisionOfManyProcesses(t *testing.T) {
	o := scratch(t, shared.URL(t))
	const stores, writers, each = 3, 4, 25
	const last = stores*writers*each + 1
	var list []*cockroach.Store
	for range stores {
		list = append(list, open(t, o))
	}
	apply(t, list[0], first())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() { followAll(ctx, t, s, last) })
		for j := range writers {
			wg.Go(func() {
				for k := range each {
					if _, err := s.Apply(ctx, addSite(fmt.Sprintf("s-%d-%d-%d", i, j, k))); err != nil {
						t.Errorf("Apply: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	rows, err := list[0].Read(ctx, geoconfig.Query{Sites: true, Audit: geoconfig.MaxBatchRows})
	if err != nil || rows.Revision != last || len(rows.Sites) != last+1 || len(rows.Audit) != last-1 {
		t.Fatalf("got revision %d, %d sites, %d records, %v; want revision %d", rows.Revision, len(rows.Sites), len(rows.Audit), err, last)
	}
	for i, a := range rows.Audit {
		if want := uint64(last - 1 - i); a.Number != want || a.Revision != ids.Revision(want)+1 {
			t.Fatalf("record %d has number %d and revision %d", want, a.Number, a.Revision)
		}
	}
}

func followAll(ctx context.Context, t *testing.T, s geoconfig.Store, last ids.Revision) {
	for since := ids.Revision(1); since < last; {
		rows, err := s.Follow(ctx, since, 7)
		if err != nil {
			t.Errorf("Follow: %v", err)
			return
		}
		for i, site := range rows.Sites {
			if want := since + ids.Revision(i) + 1; site.Revision != want {
				t.Errorf("after revision %d came %d", want-1, site.Revision)
				return
			}
		}
		if rows.Revision != since+ids.Revision(len(rows.Sites)) {
			t.Errorf("%d rows end at revision %d, after %d", len(rows.Sites), rows.Revision, since)
			return
		}
		since = rows.Revision
	}
}

func TestApply_OneBadBatchHarmsNoOther(t *testing.T) {
	o := scratch(t, shared.URL(t))
	execute(t, o, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no poison here'; END $$`,
		`CREATE TRIGGER poison BEFORE INSERT ON sites FOR EACH ROW WHEN (NEW.key = 'poison') EXECUTE FUNCTION refuse()`)
	s := open(t, o)
	apply(t, s, first())
	const calls = 40
	errs := make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			name := fmt.Sprint("s", i)
			if i == calls/2 {
				name = "poison"
			}
			_, errs[i] = s.Apply(t.Context(), addSite(name))
		})
	}
	wg.Wait()
	for i, err := range errs {
		if want := i == calls/2; fault.Is(err, fault.IO) != want || (err != nil) != want {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	rows, err := s.Read(t.Context(), geoconfig.Query{})
	if err != nil || rows.Revision != calls {
		t.Errorf("got revision %d, %v, want %d", rows.Revision, err, calls)
	}
}

func TestKeys_AreForgottenOnlyByTheirNumber(t *testing.T) {
	o := scratch(t, shared.URL(t))
	s := open(t, o)
	apply(t, s, first())
	// As many younger keys as are kept, less one.
	execute(t, o, fmt.Sprintf(`UPDATE state SET keys = %d`, geoconfig.KeptKeys-1))
	apply(t, s, addSite("oslo"))
	if rev, applied, err := s.Settle(t.Context(), "first"); rev != 1 || !applied || err != nil {
		t.Fatalf("got %d, %v, %v", rev, applied, err)
	}
	apply(t, s, addSite("rome"))
	if _, applied, err := s.Settle(t.Context(), "first"); applied || err != nil {
		t.Fatalf("the oldest key is still there: %v, %v", applied, err)
	}
	if _, applied, err := s.Settle(t.Context(), "add-oslo"); !applied || err != nil {
		t.Fatalf("a younger key went: %v, %v", applied, err)
	}
}

func TestOpen_RefusesTablesOfAnotherVersion(t *testing.T) {
	url := shared.URL(t)
	o := cockroach.Options{Options: database.Options{URL: url, Schema: postgrestest.Schema(t, url)}}
	_, err := cockroach.Open(t.Context(), o)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "geo-config init") {
		t.Fatalf("without tables: %v", err)
	}
	o = scratch(t, url)
	execute(t, o, `INSERT INTO migrations (kind, version, name) VALUES ('schema', 99, '0099_future.sql')`)
	for what, try := range map[string]func() error{
		"Open":    func() error { _, err := cockroach.Open(t.Context(), o); return err },
		"Migrate": func() error { _, err := schema.Migrate(t.Context(), connect(t, o.Options)); return err },
	} {
		if err := try(); !fault.Is(err, fault.NewerVersion) || !strings.Contains(err.Error(), "version 99") {
			t.Errorf("%s: got %v, want a newer version", what, err)
		}
	}
}

func TestMigrate_MayBeRepeatedAndRunAtOnce(t *testing.T) {
	url := shared.URL(t)
	o := cockroach.Options{Options: database.Options{URL: url, Schema: postgrestest.Schema(t, url)}}
	d := connect(t, o.Options)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := schema.Migrate(t.Context(), d); err != nil {
				t.Errorf("Migrate: %v", err)
			}
		})
	}
	wg.Wait()
	s := open(t, o)
	rev := apply(t, s, first())
	report, err := schema.Migrate(t.Context(), d)
	if err == nil {
		err = schema.Home(t.Context(), d, "nowhere", &report)
	}
	if err != nil || len(report.Applied) != 0 || report.Version == 0 || len(report.Skipped) == 0 || !strings.Contains(report.Database, "PostgreSQL") {
		t.Errorf("a repetition: %+v, %v", report, err)
	}
	if rows, err := s.Read(t.Context(), geoconfig.Query{}); err != nil || rows.Revision != rev {
		t.Errorf("after a repetition: %+v, %v", rows, err)
	}
}

func TestOpen_SaysWhatCannotBeReached(t *testing.T) {
	url := shared.URL(t)
	for _, c := range []struct {
		what, url, schema string
		want              fault.Kind
	}{
		{"no URL", "here", "", fault.Invalid},
		{"a wrong URL", "postgresql://ann:secret@host:port/x", "", fault.Invalid},
		{"a schema that is no name", url, `x"; DROP`, fault.Invalid},
		{"nobody listens", "postgresql://ann:secret@127.0.0.1:1/x?sslmode=disable", "", fault.Unreachable},
		{"no such database", strings.Replace(url, "/postgres?", "/nothing?", 1), "", fault.NotFound},
		{"no such user", strings.Replace(url, "cartwheel@", "eve:secret@", 1), "", fault.Unauthorized},
	} {
		_, err := cockroach.Open(t.Context(), cockroach.Options{Options: database.Options{URL: c.url, Schema: c.schema}})
		if !fault.Is(err, c.want) {
			t.Errorf("%s: got %v of kind %v, want %v", c.what, err, fault.KindOf(err), c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", c.what, err)
		}
	}
}

func TestClose_EndsManyFollowers(t *testing.T) {
	s := open(t, scratch(t, shared.URL(t)))
	apply(t, s, first())
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := s.Follow(context.Background(), 1, 0)
			done <- err
		}()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		select {
		case err := <-done:
			if !fault.Is(err, fault.Closed) {
				t.Errorf("got %v, want closed", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a follower still waits")
		}
	}
}
