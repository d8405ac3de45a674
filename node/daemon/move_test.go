package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/archive"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// rootSlice waits until the root slice's row is as it has to be.
func rootSlice(t *testing.T, store geoconfig.Store, what string, good func(geoconfig.SliceRow) bool) geoconfig.SliceRow {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last any
	for {
		rows, err := store.Read(ctx, geoconfig.Query{SliceIDs: []ids.Slice{1}})
		if err == nil && len(rows.Slices) == 1 && good(rows.Slices[0]) {
			return rows.Slices[0]
		}
		if last = rows.Slices; err != nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the root slice is not %s: %v", what, last)
		}
	}
}

// move writes one store's content into another, as the commands do.
func move(t *testing.T, from archive.Source, into func(*archive.File) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "move")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := archive.Export(t.Context(), from, file); err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := into(f); err != nil {
		t.Fatal(err)
	}
}

// The nodes run on while their configuration moves into a database and back, and
// change it afterwards as if it had never been elsewhere: a standby takes over
// from an active that ends.
func TestGeoConfig_MovesWhileTheClusterRuns(t *testing.T) {
	url, file := newDatabase(t)
	dir := t.TempDir()
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "geo")
	serve := func(listen string, more ...string) *process {
		return launch(t, append([]string{"geo-config", "--data", data, "--listen", listen, "--admin", admin.KeyID()}, more...)...)
	}
	geo := serve("/ip4/127.0.0.1/tcp/0")
	address := geo.Ready.Addresses[0]
	listen, _, _ := strings.Cut(address, "/p2p/")
	dirs := map[string]string{"a": filepath.Join(dir, "a"), "b": filepath.Join(dir, "b"), "c": filepath.Join(dir, "c")}
	enrol(t, admin, address, dirs)
	nodes := map[ids.Node]*process{}
	args := map[ids.Node][]string{}
	for site, data := range dirs {
		words := []string{"node", "--data", data, "--site", site, "--listen", "/ip4/127.0.0.1/tcp/0", "--geo-config", address, "--expected-nodes", "3", "--lease", "1s"}
		n := launch(t, words...)
		nodes[ids.Node(n.Ready.ID)], args[ids.Node(n.Ready.ID)] = n, words
	}
	store := openStore(t, admin, address)
	whole := func(r geoconfig.SliceRow) bool { return len(r.Normals()) == 3 }
	row := rootSlice(t, store, "whole", whole)

	// Into the database.
	if code := geo.end(); code != 0 {
		t.Fatalf("got code %d\n%s", code, geo.stderr)
	}
	old, err := embedded.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	move(t, old, func(f *archive.File) error {
		return cockroach.Load(t.Context(), cockroach.Options{Options: database.Options{URL: url}}, f)
	})
	old.Close()
	if err := os.Rename(filepath.Join(data, embedded.FileName), filepath.Join(dir, "moved.db")); err != nil {
		t.Fatal(err)
	}
	geo = serve(listen, "--database-file", file)
	failOver(t, store, nodes, row)

	// And back.
	for id, words := range args {
		if nodes[id] == nil {
			nodes[id] = launch(t, words...)
		}
	}
	row = rootSlice(t, store, "whole again", whole)
	if code := geo.end(); code != 0 {
		t.Fatalf("got code %d\n%s", code, geo.stderr)
	}
	db, err := cockroach.Open(t.Context(), cockroach.Options{Options: database.Options{URL: url}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	back, err := embedded.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	move(t, cockroach.Dumper{Store: db}, func(f *archive.File) error { return back.Load(t.Context(), f) })
	back.Close()
	serve(listen)
	failOver(t, store, nodes, row)
}

// failOver ends the active of a slice, and waits until another member takes over.
func failOver(t *testing.T, store geoconfig.Store, nodes map[ids.Node]*process, row geoconfig.SliceRow) {
	t.Helper()
	if code := nodes[row.Active].end(); code != 0 {
		t.Fatalf("got code %d\n%s", code, nodes[row.Active].stderr)
	}
	nodes[row.Active] = nil
	rootSlice(t, store, "taken over", func(r geoconfig.SliceRow) bool { return r.Active != row.Active && r.Epoch > row.Epoch })
}
