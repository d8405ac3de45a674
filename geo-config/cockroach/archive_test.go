package cockroach_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/storetest/pgproxy"
)

// history fills a store with rows that changed, rows that went, settled keys
// and keys that are no text.
func history(t *testing.T, s geoconfig.Store, batches int) {
	t.Helper()
	b := first()
	b.Nodes = []geoconfig.Node{{ID: "n1", Site: "paris"}, {ID: "n2", Site: "tokyo"}}
	b.Users = []geoconfig.User{{Name: "ann", Key: "k", UID: 7, GIDs: []uint32{7}}}
	rev := apply(t, s, b)
	row := geoconfig.SliceRow{ID: 7, Epoch: 1, Active: "n1", Policy: geoconfig.Policy{Level: 1, Kind: geoconfig.Ordinary}, Members: []geoconfig.Member{{Node: "n1", State: geoconfig.Normal}}}
	apply(t, s, geoconfig.Batch{Key: "slice\x00\xff", Slices: []geoconfig.SliceSwap{{Row: row}}})
	apply(t, s, geoconfig.Batch{Key: "bye", Remove: []geoconfig.Removal{{Key: b.Users[0].RowKey(), Revision: rev}}})
	record := geoconfig.Record{Kind: "plan", Name: "draft", Form: 1, Body: []byte(`{"drain":"n2"}`), ExpiresNS: 9}
	gone := geoconfig.Record{Kind: "session", Name: "gone", Form: 1, Body: []byte(`1`)}
	rev = apply(t, s, geoconfig.Batch{Key: "records", Records: []geoconfig.Record{record, gone}})
	apply(t, s, geoconfig.Batch{Key: "record gone", Remove: []geoconfig.Removal{{Key: gone.Key(), Revision: rev}}})
	if _, _, err := s.Settle(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		site := addSite(fmt.Sprint("s", i))
		site.Sites[0].Location = "<&\u2028 here"
		apply(t, s, site)
	}
}

// export writes a store's archive into a file.
func export(t *testing.T, source archive.Source) string {
	t.Helper()
	var text bytes.Buffer
	if _, err := archive.Export(t.Context(), source, &text); err != nil {
		t.Fatalf("Export: %v", err)
	}
	path := filepath.Join(t.TempDir(), "export")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openArchive(t *testing.T, path string) *archive.File {
	t.Helper()
	f, err := archive.Open(path)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// content is all that one can read of a store.
func content(t *testing.T, s geoconfig.Store) [2]geoconfig.Rows {
	t.Helper()
	rows, err := s.Read(t.Context(), geoconfig.Query{Sites: true, Nodes: true, Users: true, Slices: 100, Records: 100, RecordKind: "plan", Audit: geoconfig.MaxBatchRows})
	if err != nil {
		t.Fatal(err)
	}
	followed, err := s.Follow(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return [2]geoconfig.Rows{rows, followed}
}

func TestLoad_MovesAClusterThereAndBackUnchanged(t *testing.T) {
	old, err := embedded.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	history(t, old, 700) // more than two parts
	want := content(t, old)
	o := scratch(t, shared.URL(t))
	if err := cockroach.Load(t.Context(), o, openArchive(t, export(t, old))); err != nil {
		t.Fatalf("Load: %v", err)
	}
	db := open(t, o)
	if got := content(t, db); !reflect.DeepEqual(got, want) {
		t.Fatalf("in the database: %+v, want %+v", got, want)
	}
	goesOn(t, db, want[0].Revision)
	want = content(t, db)
	back, err := embedded.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	path := export(t, cockroach.Dumper{Store: db})
	if err := back.Load(t.Context(), openArchive(t, path)); err != nil {
		t.Fatalf("Load: %v", err)
	}
	if got := content(t, back); !reflect.DeepEqual(got, want) {
		t.Fatalf("back in a file: %+v, want %+v", got, want)
	}
	if err := back.Load(t.Context(), openArchive(t, path)); !fault.Is(err, fault.NotEmpty) {
		t.Errorf("a second time: got %v, want not empty", err)
	}
	if rev, err := back.Apply(t.Context(), addSite("after-move")); err != nil || rev >= want[0].Revision+1 {
		t.Errorf("a key of the database: got %d, %v", rev, err)
	}
	if rev := apply(t, back, addSite("home")); rev != want[0].Revision+1 {
		t.Errorf("got revision %d, want %d", rev, want[0].Revision+1)
	}
}

// goesOn checks that a moved store knows its keys, references and counters.
func goesOn(t *testing.T, s geoconfig.Store, rev ids.Revision) {
	t.Helper()
	if again := apply(t, s, first()); again != 1 {
		t.Errorf("the first key has revision %d", again)
	}
	if got, applied, err := s.Settle(t.Context(), "slice\x00\xff"); got != 2 || !applied || err != nil {
		t.Errorf("a key that is no text: %d, %v, %v", got, applied, err)
	}
	if _, err := s.Apply(t.Context(), geoconfig.Batch{Key: "never", Sites: []geoconfig.Site{{Name: "x"}}}); !fault.Is(err, fault.Expired) {
		t.Errorf("a settled key came back to life: %v", err)
	}
	for _, r := range []geoconfig.RowKey{geoconfig.Node{ID: "n1"}.Key(), geoconfig.Site{Name: "tokyo"}.Key()} {
		_, err := s.Apply(t.Context(), geoconfig.Batch{Key: "remove " + r.Name, Remove: []geoconfig.Removal{{Key: r, Revision: 1}}})
		if !fault.Is(err, fault.NotEmpty) {
			t.Errorf("removing %s: %v", r, err)
		}
	}
	if got := apply(t, s, addSite("after-move")); got != rev+1 {
		t.Errorf("got revision %d, want %d", got, rev+1)
	}
}

func TestLoad_GoesOnWhereItEnded(t *testing.T) {
	old, err := embedded.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	history(t, old, 700)
	f := openArchive(t, export(t, old))
	o := scratch(t, shared.URL(t))
	// After the first commit the import is ended.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var commits atomic.Int32
	_, url := pgproxy.Start(t, o.URL, func(r pgproxy.Request) pgproxy.Fault {
		if r.IsCommit() && commits.Add(1) > 1 {
			cancel()
			return pgproxy.LoseRequest
		}
		return pgproxy.None
	})
	broken := o
	broken.URL = url
	err = cockroach.Load(ctx, broken, f)
	if err == nil {
		t.Fatal("a load without commits succeeded")
	}
	if _, err := cockroach.Open(t.Context(), o); !fault.Is(err, fault.Busy) {
		t.Errorf("opening it meanwhile: got %v, want busy", err)
	}
	other, err := embedded.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	history(t, other, 1)
	another := openArchive(t, export(t, other))
	if err := cockroach.Load(t.Context(), o, another); !fault.Is(err, fault.NotEmpty) {
		t.Errorf("another archive meanwhile: got %v, want not empty", err)
	}
	for range 2 { // the second finds all done
		if err := cockroach.Load(t.Context(), o, f); err != nil {
			t.Fatalf("Load: %v", err)
		}
	}
	s := open(t, o)
	if got, want := content(t, s), content(t, old); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	apply(t, s, addSite("more"))
	for what, f := range map[string]*archive.File{"another archive": another, "the same archive": f} {
		if err := cockroach.Load(t.Context(), o, f); !fault.Is(err, fault.NotEmpty) {
			t.Errorf("%s into a store in use: got %v, want not empty", what, err)
		}
	}
}
