package daemon

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/cockroach/schema"
	"cartwheel.dev/geo-config/embedded"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/storetest/pgproxy"
	"cartwheel.dev/geo-config/storetest/postgrestest"
	"cartwheel.dev/node/wire"
)

// newDatabase starts a PostgreSQL with the tables, and writes its URL to a file.
func newDatabase(t *testing.T) (url, file string) {
	t.Helper()
	url = postgrestest.Start(t)
	d, err := database.Open(t.Context(), database.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := schema.Migrate(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return url, file
}

// Two servers with one key are one peer at two addresses. Nodes and admins go on
// with the one that is left.
func TestGeoConfig_TwoServersShareADatabase(t *testing.T) {
	url, file := newDatabase(t)
	dir := t.TempDir()
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(data string, database ...string) *process {
		return launch(t, append([]string{"geo-config", "--data", data, "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID()}, database...)...)
	}
	one := serve(filepath.Join(dir, "one"), "--database", url)
	key, err := os.ReadFile(filepath.Join(dir, "one", keyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "two"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "two", keyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	two := serve(filepath.Join(dir, "two"), "--database-file", file)
	if one.Ready.ID != two.Ready.ID || one.Ready.Cluster != two.Ready.Cluster || one.Ready.Cluster == "" {
		t.Fatalf("the servers are %+v and %+v", one.Ready, two.Ready)
	}
	enrol(t, admin, one.Ready.Addresses[0], map[string]string{"a": filepath.Join(dir, "a")})
	node := launch(t, "node", "--data", filepath.Join(dir, "a"), "--site", "a", "--listen", "/ip4/127.0.0.1/tcp/0",
		"--geo-config", one.Ready.Addresses[0], "--geo-config", two.Ready.Addresses[0], "--lease", "1s")
	store := openStore(t, admin, two.Ready.Addresses[0])
	rows, err := store.Read(t.Context(), geoconfig.Query{Nodes: true})
	if err != nil || len(rows.Nodes) != 1 || string(rows.Nodes[0].ID) != node.Ready.ID {
		t.Fatalf("the second server shows %+v, %v", rows, err)
	}
	if code := one.end(); code != 0 {
		t.Errorf("got code %d, want 0\n%s", code, one.stderr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := store.Apply(ctx, geoconfig.Batch{Key: "later", Sites: []geoconfig.Site{{Name: "later"}}}); err != nil {
		t.Errorf("with one server gone: %v", err)
	}
	if code := node.end(); code != 0 {
		t.Errorf("got code %d, want 0\n%s", code, node.stderr)
	}
	if code := two.end(); code != 0 {
		t.Errorf("got code %d, want 0\n%s", code, two.stderr)
	}
}

func TestGeoConfig_RefusesADatabaseWithTheReason(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Open(t.Context(), filepath.Join(dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	url := postgrestest.Start(t)
	for _, c := range []struct {
		data, database string
		kind           fault.Kind
		say            string
	}{
		{"new", "postgresql://ann:secret@127.0.0.1:1/x", fault.Usage, "--database-file"},
		{"new", "postgresql://ann@127.0.0.1:1/x?sslmode=disable", fault.Unreachable, "127.0.0.1:1/x"},
		{"new", url, fault.Invalid, "cartwheel geo-config init"},
		{"old", url, fault.Invalid, "cartwheel geo-config export"},
	} {
		var stderr safeBuffer
		args := []string{"geo-config", "--data", filepath.Join(dir, c.data), "--listen", "/ip4/127.0.0.1/tcp/0", "--database", c.database}
		code := Run(context.Background(), args, Stdio{Out: io.Discard, Err: &stderr})
		if code != c.kind.ExitCode() || !strings.Contains(stderr.String(), c.say) || strings.Contains(stderr.String(), "secret") {
			t.Errorf("%s: got code %d and %q, want %d and a word on %q", c.database, code, stderr.String(), c.kind.ExitCode(), c.say)
		}
	}
}

// The outage is longer than a reading is repeated, so that following fails too.
func TestGeoConfig_OutlivesItsDatabasesAbsence(t *testing.T) {
	url, _ := newDatabase(t)
	var away atomic.Bool
	_, through := pgproxy.Start(t, url, func(pgproxy.Request) pgproxy.Fault {
		if away.Load() {
			return pgproxy.LoseRequest
		}
		return pgproxy.None
	})
	admin, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	geo := launch(t, "geo-config", "--data", filepath.Join(t.TempDir(), "geo"), "--listen", "/ip4/127.0.0.1/tcp/0", "--admin", admin.KeyID(), "--database", through)
	store := openStore(t, admin, geo.Ready.Addresses[0])
	away.Store(true)
	short, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	defer cancel()
	b := geoconfig.Batch{Key: "meanwhile", Sites: []geoconfig.Site{{Name: "oslo"}}}
	if _, err := store.Apply(short, b); err == nil {
		t.Error("a change without the database succeeded")
	}
	<-short.Done()
	away.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := store.Apply(ctx, b); err != nil {
		t.Errorf("with the database back: %v", err)
	}
	rows, err := store.Read(ctx, geoconfig.Query{Sites: true})
	if err != nil || len(rows.Sites) != 1 {
		t.Errorf("got %+v, %v, want the one site", rows.Sites, err)
	}
	if code := geo.end(); code != 0 {
		t.Errorf("got code %d, want 0\n%s", code, geo.stderr)
	}
}
