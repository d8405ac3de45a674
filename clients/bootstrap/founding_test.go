package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is a geo-config server over a store in memory, which has a cluster and
// nothing else.
type config struct {
	*testing.T
	store *inmem.Store
	plan  bootstrap.Plan // of nodes n1 and n2 at paris and n3 at oslo

	mu      sync.Mutex // guards below
	changes []string   // who changed something
	before  func()     // what comes before the next change, once
}

func newConfig(t *testing.T) *config {
	t.Helper()
	c := &config{T: t, store: inmem.New()}
	c.apply(geoconfig.Batch{Key: "cluster", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1}})
	o := wire.Options{Key: wiretest.Key(t, 1), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Limits: wire.DefaultLimits(), Times: wiretest.Times()}
	host := wiretest.Open(t, o)
	server := serve.Serve(host, c.store, serve.Options{MayChange: c.mayChange})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		c.store.Close()
	})
	dir := t.TempDir()
	c.plan = bootstrap.Plan{
		GeoConfig: host.Addresses()[0] + "/p2p/" + host.KeyID(), AdminKey: filepath.Join(dir, "admin.key"), UserKey: filepath.Join(dir, "user.key"), User: "ann",
		Nodes: []geoconfig.Node{{ID: "n1", Site: "paris"}, {ID: "n2", Site: "paris"}, {ID: "n3", Site: "oslo"}},
	}
	c.identity(c.plan.AdminKey)
	return c
}

func (c *config) mayChange(peer string, _ *geoconfig.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, peer)
	if c.before != nil {
		c.before()
		c.before = nil
	}
	return nil
}

// changedBy are the peers that changed something.
func (c *config) changedBy() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.changes)
}

// meanwhile lets something come between the next reading and its change.
func (c *config) meanwhile(happens func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = happens
}

func (c *config) apply(b geoconfig.Batch) {
	c.Helper()
	if _, err := c.store.Apply(c.Context(), b); err != nil {
		c.Errorf("changing the store: %v", err)
	}
}

func (c *config) rows() geoconfig.Rows {
	c.Helper()
	rows, err := c.store.Read(c.Context(), geoconfig.Query{Sites: true, Nodes: true, Users: true})
	if err != nil {
		c.Fatal(err)
	}
	return rows
}

func (c *config) identity(path string) string {
	c.Helper()
	id, err := bootstrap.Identity(path)
	if err != nil {
		c.Fatalf("making a key: %v", err)
	}
	return id
}

func (c *config) register() {
	c.Helper()
	if err := bootstrap.Register(c.Context(), c.plan); err != nil {
		c.Fatalf("registering: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestIdentity_MakesAKeyOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	first, err := bootstrap.Identity(path)
	if err != nil || first == "" {
		t.Fatalf("got %q, %v", first, err)
	}
	if again, err := bootstrap.Identity(path); err != nil || again != first {
		t.Errorf("got %q, %v, want %q again", again, err, first)
	}
	if key, err := wire.LoadKey(path); err != nil || key.KeyID() != first {
		t.Errorf("the file's key is %q, %v, want %q", key.KeyID(), err, first)
	}
	if other, err := bootstrap.Identity(path + "2"); err != nil || other == first {
		t.Errorf("another file: got %q, %v, want another key", other, err)
	}
}

func TestIdentity_RefusesWhatIsNoKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.key")
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]fault.Kind{path: fault.Corrupt, filepath.Join(dir, "missing", "node.key"): fault.IO} {
		if id, err := bootstrap.Identity(file); !fault.Is(err, want) || id != "" {
			t.Errorf("%s: got %q, %v, want kind %v", file, id, err, want)
		}
	}
}

func TestRegister_WritesThePlan(t *testing.T) {
	c := newConfig(t)
	c.register()
	rows := c.rows()
	if len(rows.Sites) != 2 || len(rows.Nodes) != 3 || rows.Nodes[2].ID != "n3" || rows.Nodes[2].Site != "oslo" {
		t.Errorf("got sites %+v and nodes %+v", rows.Sites, rows.Nodes)
	}
	if len(rows.Users) != 1 {
		t.Fatalf("got users %+v, want one", rows.Users)
	}
	u := rows.Users[0]
	if u.Name != "ann" || u.Key != c.identity(c.plan.UserKey) || !u.TrustedHost || !u.Admin || int(u.UID) != max(os.Getuid(), 0) {
		t.Errorf("got user %+v, want ann as the owner of this process", u)
	}
	admin := c.identity(c.plan.AdminKey)
	if by := c.changedBy(); len(by) != 1 || by[0] != admin {
		t.Errorf("%v changed something, want %s, once", by, admin)
	}
}

func TestRegister_WritesNothingTwice(t *testing.T) {
	c := newConfig(t)
	c.register()
	first := c.rows()
	c.register()
	if again, by := c.rows(), c.changedBy(); again.Revision != first.Revision || len(by) != 1 {
		t.Errorf("the second time: revision %d after %d, and %d changes, want one", again.Revision, first.Revision, len(by))
	}
}

func TestRegister_AddsOnlyWhatIsMissing(t *testing.T) {
	c := newConfig(t)
	old := geoconfig.Node{ID: "n1", Site: "paris", Version: "old"}
	c.apply(geoconfig.Batch{Key: "before", Sites: []geoconfig.Site{{Name: "paris", Location: "left bank"}}, Nodes: []geoconfig.Node{old},
		Users: []geoconfig.User{{Name: "bob", Key: "k", UID: 7, GIDs: []uint32{7}}}})
	c.register()
	rows := c.rows()
	if len(rows.Sites) != 2 || rows.Sites[1].Location != "left bank" || len(rows.Nodes) != 3 || rows.Nodes[0].Version != "old" {
		t.Errorf("got sites %+v and nodes %+v, want the old ones as they were", rows.Sites, rows.Nodes)
	}
	if len(rows.Users) != 1 || rows.Users[0].Name != "bob" || exists(c.plan.UserKey) {
		t.Errorf("got users %+v and a key: %v, want none beside bob", rows.Users, exists(c.plan.UserKey))
	}
}

func TestRegister_TellsWhyItFails(t *testing.T) {
	closed := wiretest.Key(t, 9).KeyID()
	for name, c := range map[string]struct {
		change func(*config)
		want   fault.Kind
	}{
		"no admin's key":    {func(c *config) { c.plan.AdminKey += "2" }, fault.NotFound},
		"no address":        {func(c *config) { c.plan.GeoConfig = "127.0.0.1:1" }, fault.Invalid},
		"no peer":           {func(c *config) { c.plan.GeoConfig = "/ip4/127.0.0.1/tcp/1/p2p/x" }, fault.Invalid},
		"no multiaddress":   {func(c *config) { c.plan.GeoConfig = "/nowhere/p2p/" + closed }, fault.Invalid},
		"no folder of keys": {func(c *config) { c.plan.UserKey = filepath.Join(c.plan.UserKey, "missing") }, fault.IO},
		"no name of a node": {func(c *config) { c.plan.Nodes[0].ID = "a/b" }, fault.Invalid},
		"another was quicker": {func(c *config) {
			c.meanwhile(func() { c.apply(geoconfig.Batch{Key: "quick", Sites: []geoconfig.Site{{Name: "paris"}}}) })
		}, fault.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			f := newConfig(t)
			c.change(f)
			if err := bootstrap.Register(t.Context(), f.plan); !fault.Is(err, c.want) {
				t.Errorf("got %v of kind %v, want kind %v", err, fault.KindOf(err), c.want)
			}
		})
	}
}

func TestRegister_EndsWithItsCaller(t *testing.T) {
	c := newConfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bootstrap.Register(ctx, c.plan); !fault.Is(err, fault.Canceled) {
		t.Errorf("got %v, want kind %v", err, fault.Canceled)
	}
	if rows := c.rows(); len(rows.Nodes) != 0 {
		t.Errorf("it registered %+v", rows.Nodes)
	}
}

func TestRegister_WorksForSeveralClusters(t *testing.T) {
	var wg sync.WaitGroup
	for _, name := range []ids.Node{"x1", "x2", "x3"} {
		c := newConfig(t)
		c.plan.Nodes = []geoconfig.Node{{ID: name, Site: "paris"}}
		wg.Go(func() {
			if err := bootstrap.Register(t.Context(), c.plan); err != nil {
				t.Errorf("registering %s: %v", name, err)
				return
			}
			if rows, err := c.store.Read(t.Context(), geoconfig.Query{Nodes: true}); err != nil || len(rows.Nodes) != 1 || rows.Nodes[0].ID != name {
				t.Errorf("got nodes %+v, %v, want %s", rows.Nodes, err, name)
			}
		})
	}
	wg.Wait()
}

func TestRegister_AddsOtherUsersOnce(t *testing.T) {
	c := newConfig(t)
	c.plan.Others = []geoconfig.User{{Name: "console", Key: c.identity(filepath.Join(t.TempDir(), "console.key")), UID: 7, GIDs: []uint32{7}}}
	c.register()
	c.register()
	rows := c.rows()
	if len(rows.Users) != 2 || rows.Users[0].Name != "ann" || rows.Users[1].Name != "console" || rows.Users[1].TrustedHost {
		t.Errorf("got users %+v, want ann, and console as it was given", rows.Users)
	}
	if by := c.changedBy(); len(by) != 1 {
		t.Errorf("got %d changes, want one", len(by))
	}
}
