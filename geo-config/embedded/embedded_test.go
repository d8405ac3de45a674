package embedded_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func first() geoconfig.Batch {
	return geoconfig.Batch{
		Key: "first", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}, Sites: []geoconfig.Site{{Name: "paris"}, {Name: "tokyo"}},
		Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "cluster.init"}},
	}
}

func apply(t *testing.T, s *embedded.Store, b geoconfig.Batch) ids.Revision {
	t.Helper()
	rev, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return rev
}

func TestStore_Conforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) geoconfig.Store { return open(t, t.TempDir()) })
}

func TestOpen_FindsWhatWasWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by open")
	s := open(t, dir)
	rev := apply(t, s, first())
	gone := geoconfig.Removal{Key: geoconfig.Site{Name: "tokyo"}.Key(), Revision: rev}
	last := apply(t, s, geoconfig.Batch{Key: "second", Remove: []geoconfig.Removal{gone}})
	if _, _, err := s.Settle(t.Context(), "never"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	rows, err := s.Follow(t.Context(), 0, 0)
	if err != nil || rows.Revision != last || len(rows.Sites) != 1 || len(rows.Removed) != 1 || rows.Removed[0].Revision != last || rows.Cluster.ID != "c1" {
		t.Fatalf("got %+v, %v", rows, err)
	}
	if again := apply(t, s, first()); again != rev {
		t.Errorf("the key was forgotten: got revision %d, want %d", again, rev)
	}
	if _, err := s.Apply(t.Context(), geoconfig.Batch{Key: "never", Sites: []geoconfig.Site{{Name: "oslo"}}}); !fault.Is(err, fault.Expired) {
		t.Errorf("a settled key came back to life: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, embedded.FileName)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may open the database: %v, %v", info.Mode(), err)
	}
}

func TestOpen_RefusesASecondStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := embedded.Open(t.Context(), dir); !fault.Is(err, fault.Busy) {
		t.Fatalf("a second one: got %v, want busy", err)
	}
	apply(t, s, first())
	s.Close()
	open(t, dir)
}

// edit changes a closed database behind the store's back.
func edit(t *testing.T, dir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, embedded.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestOpen_LeavesWhatItRefusesAsItIs(t *testing.T) {
	damage := func(t *testing.T, dir string) {
		path := filepath.Join(dir, embedded.FileName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 4096; i < len(b); i++ {
			b[i] ^= 0x5a
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		want   fault.Kind
		change func(t *testing.T, dir string)
	}{
		{"a newer version", fault.NewerVersion, func(t *testing.T, dir string) { edit(t, dir, "PRAGMA user_version = 99") }},
		{"another program's database", fault.Invalid, func(t *testing.T, dir string) { edit(t, dir, "PRAGMA application_id = 7") }},
		{"a file that is no database", fault.Invalid, func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, embedded.FileName), bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"damage", fault.Corrupt, damage},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			apply(t, s, first())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir)
			path := filepath.Join(dir, embedded.FileName)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = embedded.Open(t.Context(), dir)
			if !fault.Is(err, c.want) {
				t.Fatalf("got %v (%v), want %v", err, fault.KindOf(err), c.want)
			}
			if fault.SubjectOf(err) != path {
				t.Errorf("the error names %q, want %q", fault.SubjectOf(err), path)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
	t.Run("a file in the directory's place", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.Open(t.Context(), path); !fault.Is(err, fault.NotDirectory) {
			t.Fatalf("got %v, want not a directory", err)
		}
	})
}

func TestSettle_ForgetsKeysByNumberOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	apply(t, s, first())
	s.Close()
	// As many younger keys as are kept, and one to go.
	edit(t, dir, fmt.Sprintf(`INSERT INTO batches (number, key, revision) VALUES (%d, 'young', 1)`, geoconfig.KeptKeys))
	s = open(t, dir)
	if rev, applied, err := s.Settle(t.Context(), "first"); rev != 1 || !applied || err != nil {
		t.Fatalf("got %d, %v, %v", rev, applied, err)
	}
	apply(t, s, geoconfig.Batch{Key: "another", Sites: []geoconfig.Site{{Name: "oslo"}}})
	if _, applied, err := s.Settle(t.Context(), "first"); applied || err != nil {
		t.Fatalf("the oldest key is still there: %v, %v", applied, err)
	}
	if _, applied, err := s.Settle(t.Context(), "young"); !applied || err != nil {
		t.Fatalf("a younger key went: %v, %v", applied, err)
	}
}

func TestClose_EndsManyFollowers(t *testing.T) {
	s := open(t, t.TempDir())
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
