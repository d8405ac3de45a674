package cluster_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/cluster"
)

// knowing is a store that remembers what it is told of generations.
type knowing struct {
	geoconfig.Store
	told ids.Generation
}

func (k *knowing) Know(g ids.Generation) { k.told = g }

// raised makes the bench's store one of generation 2.
func (b *bench) raised() {
	b.Helper()
	rows, err := b.store.Read(b.Context(), geoconfig.Query{})
	if err != nil {
		b.Fatal(err)
	}
	rows.Cluster.Generation = 2
	b.apply(geoconfig.Batch{Cluster: rows.Cluster})
}

func TestPromise_HoldsOverARestart(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "rows.json")
	store := &knowing{Store: b.store}
	d := b.open(func(o *cluster.Options) { o.File, o.Store = file, store })
	refresh(t, d)
	if err := d.Promise(2); err != nil {
		t.Fatal(err)
	}
	if store.told != 2 {
		t.Errorf("the store was told %d, want 2", store.told)
	}
	// Also one that has nothing to tell.
	if err := d.Refresh(t.Context()); !fault.Is(err, fault.WrongCluster) {
		t.Errorf("at the same revision: got %v", err)
	}
	b.apply(made(7))
	for name, d := range map[string]*cluster.Directory{"at once": d, "after a restart": b.open(func(o *cluster.Options) { o.File = file })} {
		if err := d.Refresh(t.Context()); !fault.Is(err, fault.WrongCluster) || d.Refused() == nil || d.Away().IsZero() {
			t.Errorf("%s: got %v, refused %v", name, err, d.Refused())
		}
		if _, ok := d.Slice(7); ok || d.Revision() != 1 || d.Floor() != 2 {
			t.Errorf("%s: it follows the lost store: revision %d, floor %d", name, d.Revision(), d.Floor())
		}
	}
	b.raised()
	refresh(t, d)
	if _, ok := d.Slice(7); !ok || d.Refused() != nil || !d.Away().IsZero() {
		t.Errorf("the store of the generation promised is refused: %v", d.Refused())
	}
}

func TestPromise_RefusesWhatIsNoRise(t *testing.T) {
	b := newBench(t)
	b.raised()
	d := b.open(nil)
	refresh(t, d)
	for g, want := range map[ids.Generation]fault.Kind{1: fault.Conflict, 2: fault.None} {
		if err := d.Promise(g); fault.KindOf(err) != want {
			t.Errorf("promising %d: got %v, want kind %v", g, err, want)
		}
	}
	if err := d.Promise(5); err != nil {
		t.Fatal(err)
	}
	if err := d.Promise(4); !fault.Is(err, fault.Conflict) {
		t.Errorf("promising 4 after 5: %v", err)
	}
}

func TestPromise_FailsWhereItCannotBeKept(t *testing.T) {
	b := newBench(t)
	d := b.open(func(o *cluster.Options) { o.File = filepath.Join(t.TempDir(), "no", "folder") })
	if err := d.Promise(2); fault.KindOf(err) != fault.IO {
		t.Errorf("got %v, want kind %v", err, fault.IO)
	}
}

func TestLearnSwapped_IsVoidAfterAPromise(t *testing.T) {
	b := newBench(t)
	b.apply(made(7))
	d := b.open(nil)
	refresh(t, d)
	swapped := func(epoch ids.Epoch, g ids.Generation) (told bool) {
		r := row(7, epoch)
		r.Generation = g
		if d.LearnSwapped(r, func() { told = true }) != told {
			t.Errorf("epoch %d: tell was called: %v", epoch, told)
		}
		return told
	}
	if !swapped(2, 1) {
		t.Error("a swap before the promise is void")
	}
	if err := d.Promise(2); err != nil {
		t.Fatal(err)
	}
	if swapped(3, 1) {
		t.Error("a swap of the lost store counts")
	}
	if r, _ := d.Slice(7); r.Epoch != 2 || d.Copy().Slices[0].Epoch != 2 {
		t.Errorf("the row is of epoch %d, want 2", r.Epoch)
	}
	if !swapped(9, 2) {
		t.Error("a swap of the new store is void")
	}
}

func TestLearn_TakesNoNewSliceOfALostStore(t *testing.T) {
	b := newBench(t)
	b.apply(made(7))
	d := b.open(nil)
	refresh(t, d)
	if err := d.Promise(2); err != nil {
		t.Fatal(err)
	}
	known, unknown := row(7, 3), row(8, 1)
	known.Generation, unknown.Generation = 1, 1
	d.Learn(known, unknown)
	if r, _ := d.Slice(7); r.Epoch != 3 {
		t.Errorf("a peer's row of a known slice: epoch %d, want 3", r.Epoch)
	}
	if _, ok := d.Slice(8); ok {
		t.Error("a slice that the lost store made last is known")
	}
}

// replaced is a store that another one takes the place of.
type replaced struct{ knowing }

// pages is a store whose content comes in pages, each at a revision of its own.
type pages struct {
	geoconfig.Store
	list []geoconfig.Rows
}

func (p *pages) Read(context.Context, geoconfig.Query) (geoconfig.Rows, error) {
	last := p.list[len(p.list)-1]
	return geoconfig.Rows{Cluster: last.Cluster, Revision: last.Revision}, nil
}

func (p *pages) Follow(_ context.Context, since ids.Revision, _ int) (geoconfig.Rows, error) {
	i := slices.IndexFunc(p.list, func(r geoconfig.Rows) bool { return r.Revision > since })
	return p.list[i], nil
}

func TestRefresh_DropsWhatANewGenerationLacks(t *testing.T) {
	b := newBench(t)
	b.apply(made(7, 8))
	var heard told
	var store replaced
	store.Store = b.store
	rebuilt := &pages{Store: b.store}
	d := b.open(func(o *cluster.Options) {
		heard.hear(o)
		o.Store = &store
	})
	refresh(t, d)
	heard = told{}
	c := &geoconfig.Cluster{ID: "c1", Generation: 2}
	moved := row(7, 50)
	moved.Generation = 2
	rebuilt.list = []geoconfig.Rows{
		{Cluster: c, Revision: 100, More: true, Sites: []geoconfig.Site{{Name: "paris"}}, Nodes: []geoconfig.Node{{ID: "n1", Site: "paris"}, {ID: "n2", Site: "paris"}}},
		{Cluster: c, Revision: 101, Slices: []geoconfig.SliceRow{moved}, Users: []geoconfig.User{user("bob", "k2")}},
	}
	store.Store = rebuilt
	refresh(t, d)
	_, gone := d.User("k1")
	_, there := d.User("k2")
	_, lost := d.Slice(8)
	if r, _ := d.Slice(7); gone || !there || lost || len(d.Nodes()) != 2 || len(d.Sites()) != 1 || r.Epoch != 50 {
		t.Errorf("ann: %v, bob: %v, slice 8: %v, nodes %v, sites %v, slice 7 in epoch %d", gone, there, lost, d.Nodes(), d.Sites(), r.Epoch)
	}
	if heard.nodes != 2 || heard.users != 1 || d.Floor() != 2 || store.told != 2 {
		t.Errorf("told %+v, with a floor of %d that the store knows as %d: want nodes twice, users once, and 2", heard, d.Floor(), store.told)
	}
}

// TestRefresh_KeepsWhatANewGenerationHas raises the generation of a store whose other
// rows stay as they are.
func TestRefresh_KeepsWhatANewGenerationHas(t *testing.T) {
	b := newBench(t)
	b.apply(made(7))
	d := b.open(nil)
	refresh(t, d)
	b.raised()
	refresh(t, d)
	_, user := d.User("k1")
	_, slice := d.Slice(7)
	if d.Floor() != 2 || !user || !slice || len(d.Nodes()) != 3 || len(d.Sites()) != 2 || d.Revision() != 3 {
		t.Errorf("user %v, slice %v, nodes %v, sites %v, revision %d", user, slice, d.Nodes(), d.Sites(), d.Revision())
	}
}

func TestRun_FollowsNoStoreThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		d := b.open(nil)
		if err := d.Promise(2); err != nil {
			t.Fatal(err)
		}
		follow(t, d)
		synctest.Wait()
		if d.Refused() == nil || d.Away().IsZero() || d.Revision() != 0 {
			t.Errorf("refused: %v, at revision %d", d.Refused(), d.Revision())
		}
		b.raised()
		<-time.After(time.Minute)
		if d.Refused() != nil || d.Revision() != 2 {
			t.Errorf("the new store: refused %v, at revision %d", d.Refused(), d.Revision())
		}
	})
}

// promising is a handler of logs that has a node promise something when it hears that
// geo-config is back: its answer was judged then, and is not taken in yet.
type promising struct {
	slog.Handler
	d **cluster.Directory
}

func (p promising) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "geo-config is back" {
		return (*p.d).Promise(2)
	}
	return nil
}

func (promising) Enabled(context.Context, slog.Level) bool { return true }

func TestRun_TakesNothingOldAfterAPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		store := &away{Store: b.store}
		var d *cluster.Directory
		d = b.open(func(o *cluster.Options) { o.Store, o.Logger = store, slog.New(promising{slog.DiscardHandler, &d}) })
		store.fail(fault.E(fault.Unreachable, "", "", ""))
		follow(t, d)
		synctest.Wait()
		store.fail(nil)
		<-time.After(time.Minute)
		if d.Floor() != 2 || d.Revision() != 0 || len(d.Nodes()) != 0 {
			t.Errorf("with floor %d: revision %d and %d nodes, want none", d.Floor(), d.Revision(), len(d.Nodes()))
		}
	})
}

func TestRun_TellsOnceThatAStoreWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var log bytes.Buffer
		d := b.open(func(o *cluster.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		if err := d.Promise(2); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = d.Refresh(t.Context()) // is refused
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "not the newest of the cluster") {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

func TestRun_KeepsWhatPeersTellWhileAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.apply(made(7))
		file := filepath.Join(t.TempDir(), "rows.json")
		d := b.open(func(o *cluster.Options) { o.File = file })
		follow(t, d)
		synctest.Wait()
		for epoch := ids.Epoch(5); epoch < 8; epoch++ {
			d.Learn(row(7, epoch))
			<-time.After(5 * time.Second)
			if r, _ := reopened(t, file).Slice(7); r.Epoch != epoch {
				t.Errorf("the file has epoch %d, want %d", r.Epoch, epoch)
			}
		}
	})
}
