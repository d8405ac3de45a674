package daemon

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/founding"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/node/wire"
)

// TestRoster_NodeChangesNothingOfOthers has a node change rows: it may change
// slices and its own row. Only admins change the rest.
func TestRoster_NodeChangesNothingOfOthers(t *testing.T) {
	r := newRoster([]string{"admin"}, time.Now)
	founding := geoconfig.Batch{Cluster: &geoconfig.Cluster{Secret: "new"}, Sites: []geoconfig.Site{{Name: "new"}}}
	if err := r.mayChange("n1", &founding); err != nil {
		t.Errorf("a node that is its cluster's first: %v", err)
	}
	r.take(geoconfig.Rows{Cluster: &geoconfig.Cluster{Secret: "made"}, Nodes: []geoconfig.Node{{ID: "n1"}, {ID: "n2"}}})
	for what, b := range map[string]geoconfig.Batch{
		"": {Slices: []geoconfig.SliceSwap{{}}, Audit: []geoconfig.AuditRecord{{}}, Nodes: []geoconfig.Node{{ID: "n1"}},
			Records: []geoconfig.Record{{Kind: "snapshot", Name: "nightly"}, {Kind: "drill", Name: "x"}},
			Remove:  []geoconfig.Removal{{Key: geoconfig.Record{Kind: "snapshot", Name: "old"}.Key()}, {Key: geoconfig.Record{Kind: "drill", Name: "old"}.Key()}}},
		"records/drills/eve":                  {Records: []geoconfig.Record{{Kind: "drills", Name: "eve"}}},
		"records/snapshots/eve":               {Records: []geoconfig.Record{{Kind: "snapshot", Name: "nightly"}, {Kind: "snapshots", Name: "eve"}}},
		"records/account/eve":                 {Records: []geoconfig.Record{{Kind: "account", Name: "eve"}}},
		"records/session/s":                   {Remove: []geoconfig.Removal{{Key: geoconfig.Record{Kind: "session", Name: "s"}.Key()}}},
		"the cluster's row":                   {Cluster: &geoconfig.Cluster{}},
		"cluster's row, which":                {Cluster: &geoconfig.Cluster{Secret: "made", Generation: 9, Feature: 1}},
		"a site that is there":                {Sites: []geoconfig.Site{{Revision: 7}}},
		"the users":                           {Slices: []geoconfig.SliceSwap{{}}, Users: []geoconfig.User{{}}},
		"the row of node n2":                  {Nodes: []geoconfig.Node{{ID: "n1"}, {ID: "n2"}}},
		geoconfig.ClusterKey().String() + ",": {Remove: []geoconfig.Removal{{Key: geoconfig.ClusterKey()}}},
	} {
		if err := r.mayChange("admin", &b); err != nil {
			t.Errorf("an admin may not change %q: %v", what, err)
		}
		err := r.mayChange("n1", &b)
		switch {
		case what == "" && err != nil:
			t.Errorf("a node may not change what it must: %v", err)
		case what != "" && (!fault.Is(err, fault.Permission) && !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), what)):
			t.Errorf("a node changes %s: got %v, want Permission", what, err)
		}
	}
	for level, want := range map[int]fault.Kind{1: fault.None, -1: fault.Conflict} {
		b := geoconfig.Batch{Cluster: &geoconfig.Cluster{Secret: "made", Feature: level}}
		if err := r.mayChange("n1", &b); fault.KindOf(err) != want {
			t.Errorf("a node sets feature level %d: got %v, want %v", level, err, want)
		}
	}
	for peer, want := range map[string]fault.Kind{"admin": fault.None, "n1": fault.None, "n3": fault.Unauthorized} {
		if got := fault.KindOf(r.allow(peer, true)); got != want {
			t.Errorf("%s: got %v, want %v", peer, got, want)
		}
	}
}

// TestRoster_TokenAddsOneNode has the holder of a token do what a token is for,
// and everything else.
func TestRoster_TokenAddsOneNode(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoster(nil, func() time.Time { return now })
	r.take(geoconfig.Rows{Users: []geoconfig.User{
		{Name: "ann", Key: "ann's", UID: 7, GIDs: []uint32{7}}, {Name: "root", Key: "root's", TrustedHost: true, Admin: true},
		{Name: "t", Key: "t's", Join: &geoconfig.Join{Site: "oslo", ExpiresNS: now.Add(time.Minute).UnixNano()}},
	}})
	row := geoconfig.RowKey{Table: geoconfig.UsersTable, Name: "t"}
	good := geoconfig.Batch{Nodes: []geoconfig.Node{{ID: "n", Site: "oslo"}}, Remove: []geoconfig.Removal{{Key: row}}, Audit: []geoconfig.AuditRecord{{}}}
	if err := r.allow("t's", true); err != nil {
		t.Errorf("the token may not change anything: %v", err)
	}
	if err := r.mayChange("t's", &good); err != nil {
		t.Errorf("the token may not add its node: %v", err)
	}
	for what, spoil := range map[string]func(*geoconfig.Batch){
		"another site":         func(b *geoconfig.Batch) { b.Nodes = []geoconfig.Node{{ID: "n", Site: "rome"}} },
		"a node that is there": func(b *geoconfig.Batch) { b.Nodes = []geoconfig.Node{{ID: "n", Site: "oslo", Revision: 3}} },
		"two nodes":            func(b *geoconfig.Batch) { b.Nodes = append(b.Nodes, geoconfig.Node{ID: "m", Site: "oslo"}) },
		"no node":              func(b *geoconfig.Batch) { b.Nodes = nil },
		"its row stays":        func(b *geoconfig.Batch) { b.Remove = nil },
		"another row goes":     func(b *geoconfig.Batch) { b.Remove = []geoconfig.Removal{{Key: geoconfig.ClusterKey()}} },
		"a site":               func(b *geoconfig.Batch) { b.Sites = []geoconfig.Site{{Name: "new"}} },
		"a user":               func(b *geoconfig.Batch) { b.Users = []geoconfig.User{{Name: "eve"}} },
		"a record":             func(b *geoconfig.Batch) { b.Records = []geoconfig.Record{{Kind: "account", Name: "eve"}} },
		"a slice":              func(b *geoconfig.Batch) { b.Slices = []geoconfig.SliceSwap{{}} },
		"the cluster":          func(b *geoconfig.Batch) { b.Cluster = &geoconfig.Cluster{} },
	} {
		b := good
		spoil(&b)
		if err := r.mayChange("t's", &b); !fault.Is(err, fault.Permission) {
			t.Errorf("%s: got %v, want Permission", what, err)
		}
	}
	refused := func(peer string, change bool, want fault.Kind) {
		t.Helper()
		if err := r.allow(peer, change); fault.KindOf(err) != want {
			t.Errorf("%s, change %v: got %v, want %v", peer, change, err, want)
		}
	}
	refused("t's", false, fault.Unauthorized)
	refused("ann's", false, fault.Unauthorized)
	refused("root's", true, fault.None)
	now = now.Add(2 * time.Minute)
	refused("t's", true, fault.Expired)
	r.take(geoconfig.Rows{Users: []geoconfig.User{{Name: "root", Key: "root's", TrustedHost: true}}})
	refused("root's", true, fault.Unauthorized) // an administrator no more
	now = now.Add(-2 * time.Minute)
	r.take(geoconfig.Rows{Removed: []geoconfig.Removal{{Key: row}}})
	refused("t's", true, fault.None) // so that its answer reaches it; the store refuses to remove its row again
	refused("t's", false, fault.Unauthorized)
	now = now.Add(spentLife)
	refused("t's", true, fault.Unauthorized)
}

// TestRoster_TrustsNoTokenOnGenerations: whoever is trusted may end the server by
// obeying a later one.
func TestRoster_TrustsNoTokenOnGenerations(t *testing.T) {
	r := newRoster([]string{"given"}, time.Now)
	r.take(geoconfig.Rows{Nodes: []geoconfig.Node{{ID: "n1"}}, Users: []geoconfig.User{
		{Name: "ann", Key: "ann-key", Admin: true}, {Name: "t1", Key: "token-key", Join: &geoconfig.Join{Site: "paris", ExpiresNS: 1 << 62}}}})
	for peer, want := range map[string]bool{"given": true, "ann-key": true, "n1": true, "token-key": false, "stranger": false} {
		if got := r.isTrusted(peer); got != want {
			t.Errorf("%s: got %v, want %v", peer, got, want)
		}
	}
}

func TestRoster_KnowsAChangeBeforeItIsAnswered(t *testing.T) {
	inner := inmem.New()
	defer inner.Close()
	r := newRoster(nil, time.Now)
	store := rostered{inner, r}
	ctx, stop := context.WithCancel(t.Context())
	host, err := wire.New(wire.Options{Key: newKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	followed := make(chan error, 1)
	go func() { followed <- r.follow(ctx, inner, 0, host) }()
	if _, err := founding.Found(ctx, store, founding.Batch(founding.NewCluster(time.Now()), "ann")); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		name := ids.Node(fmt.Sprint("n", i))
		b := geoconfig.Batch{Key: string(name), Sites: []geoconfig.Site{{Name: ids.Site(name)}}, Nodes: []geoconfig.Node{{ID: name, Site: ids.Site(name)}}}
		rev, err := store.Apply(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.admit(string(name)); err != nil {
			t.Fatalf("the row is there and the node is refused: %v", err)
		}
		key := geoconfig.RowKey{Table: geoconfig.NodesTable, Name: string(name)}
		if _, err = store.Apply(ctx, geoconfig.Batch{Key: string(name) + "-", Remove: []geoconfig.Removal{{Key: key, Revision: rev}}}); err != nil {
			t.Fatal(err)
		}
		if r.admit(string(name)) == nil {
			t.Fatal("the row is gone and the node is admitted")
		}
	}
	stop()
	if err := <-followed; err != nil {
		t.Error(err)
	}
}

func newKey(t *testing.T) wire.Key {
	t.Helper()
	key, err := wire.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
