package remote_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/geo-config/storetest"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/geo/serve"
	"cartwheel.dev/node/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a store behind a server, and a client of it.
type rig struct {
	inner  *inmem.Store
	server *serve.Server
	store  *remote.Store
	mesh   *wiretest.Mesh
}

const (
	clientSide = 0
	serverSide = 1
)

func newRig(t *testing.T, change func(*remote.Options), so serve.Options) *rig {
	t.Helper()
	r := &rig{inner: inmem.New(), mesh: wiretest.New(t, 2)}
	r.server = serve.Serve(r.mesh.Hosts[serverSide], r.inner, so)
	o := remote.Options{Peer: r.mesh.Hosts[serverSide].KeyID(), Attempt: 200 * time.Millisecond, Patience: 5 * time.Second, Hold: 300 * time.Millisecond}
	if change != nil {
		change(&o)
	}
	r.store = remote.Open(r.mesh.Hosts[clientSide], o)
	t.Cleanup(func() {
		r.store.Close()
		r.server.Close()
		r.inner.Close()
	})
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func first() geoconfig.Batch {
	return geoconfig.Batch{Key: "first", Cluster: &geoconfig.Cluster{ID: "c1", Generation: 1},
		Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "cluster.init"}}}
}

func TestStore_Conforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) geoconfig.Store {
		return newRig(t, func(o *remote.Options) { o.Attempt = 5 * time.Second }, serve.Options{}).store
	})
}

func TestApply_RunsOnceThoughItsAnswerIsLost(t *testing.T) {
	r := newRig(t, nil, serve.Options{})
	ctx := within(t, 10*time.Second)
	if _, err := r.store.Read(ctx, geoconfig.Query{}); err != nil {
		t.Fatal(err)
	}
	r.mesh.Cut(serverSide, clientSide, true)
	done := make(chan error, 1)
	go func() {
		rev, err := r.store.Apply(ctx, first())
		if err == nil && rev != 1 {
			t.Errorf("got revision %d, want 1", rev)
		}
		done <- err
	}()
	if _, err := r.inner.Follow(ctx, 0, 0); err != nil {
		t.Fatalf("the batch did not arrive: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("the call came back without an answer: %v", err)
	case <-time.After(300 * time.Millisecond): // longer than an attempt
	}
	r.mesh.Cut(serverSide, clientSide, false)
	if err := <-done; err != nil {
		t.Fatalf("after the answers came through again: %v", err)
	}
	rows, err := r.inner.Read(ctx, geoconfig.Query{Audit: 10})
	if err != nil || len(rows.Audit) != 1 || rows.Revision != 1 {
		t.Fatalf("applied more than once: %+v, %v", rows, err)
	}
}

func TestApply_TimesOutAndIsSettledLater(t *testing.T) {
	r := newRig(t, func(o *remote.Options) { o.Patience = 400 * time.Millisecond }, serve.Options{})
	ctx := within(t, 10*time.Second)
	r.mesh.Cut(clientSide, serverSide, true)
	began := time.Now()
	_, err := r.store.Apply(ctx, first())
	if k := fault.KindOf(err); k != fault.TimedOut && k != fault.Unreachable {
		t.Fatalf("got %v, want timed out or unreachable", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Fatalf("gave up after %v, want about 400ms", took)
	}
	r.mesh.Cut(clientSide, serverSide, false)
	wiretest.Wait(t, "an answer", func() bool {
		rev, applied, err := r.store.Settle(ctx, "first")
		if err == nil && (applied || rev != 0) {
			t.Fatalf("got %d, %v, want not applied", rev, applied)
		}
		return err == nil
	})
	if _, err := r.store.Apply(ctx, first()); !fault.Is(err, fault.Expired) {
		t.Fatalf("after settling: got %v, want expired", err)
	}
}

func TestFollow_OutlivesARestartOfTheServer(t *testing.T) {
	r := newRig(t, nil, serve.Options{})
	ctx := within(t, 15*time.Second)
	done := make(chan error, 1)
	go func() {
		rows, err := r.store.Follow(ctx, 0, 0)
		if err == nil && (rows.Revision != 1 || rows.Cluster == nil) {
			t.Errorf("got %+v", rows)
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("came back without a change: %v", err)
	case <-time.After(700 * time.Millisecond): // two holds
	}
	r.server.Close()
	again := serve.Serve(r.mesh.Hosts[serverSide], r.inner, serve.Options{})
	defer again.Close()
	if _, err := r.store.Apply(ctx, first()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestStore_DoesNotRetryRefusals(t *testing.T) {
	no := fault.E(fault.Unauthorized, "test.Allow", "", "not on the roster")
	r := newRig(t, func(o *remote.Options) { o.Cluster = "c2" }, serve.Options{Allow: func(_ string, change bool) error {
		if change {
			return no
		}
		return nil
	}})
	ctx := within(t, 10*time.Second)
	if _, err := r.store.Apply(ctx, first()); !fault.Is(err, fault.Unauthorized) {
		t.Fatalf("a change: got %v, want unauthorized", err)
	}
	if _, err := r.store.Read(ctx, geoconfig.Query{}); err != nil {
		t.Fatalf("a new store has no cluster to be wrong: %v", err)
	}
	if _, err := r.inner.Apply(ctx, first()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Read(ctx, geoconfig.Query{}); !fault.Is(err, fault.WrongCluster) {
		t.Fatalf("another cluster's store: got %v, want wrong cluster", err)
	}
	if _, err := r.store.Follow(ctx, 0, 0); !fault.Is(err, fault.WrongCluster) {
		t.Fatalf("following it: got %v, want wrong cluster", err)
	}
}

func TestFollow_RetriesWhereTooManyFollow(t *testing.T) {
	r := newRig(t, nil, serve.Options{Followers: 1})
	ctx := within(t, 10*time.Second)
	const followers = 3
	done := make(chan error, followers)
	for range followers {
		go func() {
			_, err := r.store.Follow(ctx, 0, 0)
			done <- err
		}()
	}
	if _, err := r.store.Apply(ctx, first()); err != nil {
		t.Fatal(err)
	}
	for range followers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestFollow_LargeAnswersComeInPieces(t *testing.T) {
	// The race detector takes seconds for some megabytes of JSON where others compute.
	r := newRig(t, func(o *remote.Options) { o.Attempt, o.Patience = time.Minute, time.Minute }, serve.Options{})
	ctx := within(t, 2*time.Minute)
	if _, err := r.store.Apply(ctx, first()); err != nil {
		t.Fatal(err)
	}
	const batches, each = 3, 130
	for i := range batches {
		b := geoconfig.Batch{Key: fmt.Sprint("big", i)}
		for j := range each { // 24 KiB of JSON in each row
			b.Sites = append(b.Sites, geoconfig.Site{Name: ids.Site(fmt.Sprintf("s%d-%d", i, j)), Location: strings.Repeat("<", 4096)})
		}
		if _, err := r.store.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for since, more := ids.Revision(1), true; more; {
		rows, err := r.store.Follow(ctx, since, 0)
		if err != nil {
			t.Fatal(err)
		}
		got += len(rows.Sites)
		since, more = rows.Revision, rows.More
	}
	if got != batches*each {
		t.Fatalf("got %d rows, want %d", got, batches*each)
	}
	if _, err := r.store.Read(ctx, geoconfig.Query{Sites: true}); !fault.Is(err, fault.TooLarge) {
		t.Fatalf("reading them at once: got %v, want too large", err)
	}
}

func TestKnow_EndsWhatAnOlderStoreIsAsked(t *testing.T) {
	r := newRig(t, nil, serve.Options{})
	ctx := within(t, 10*time.Second)
	if _, err := r.store.Apply(ctx, first()); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"read":       func() error { _, err := r.store.Read(ctx, geoconfig.Query{}); return err },
		"apply":      func() error { _, err := r.store.Apply(ctx, first()); return err },
		"settle":     func() error { _, _, err := r.store.Settle(ctx, "first"); return err },
		"follow":     func() error { _, err := r.store.Follow(ctx, 0, 0); return err },
		"properties": func() error { _, err := r.store.Properties(ctx); return err },
	}
	for step, g := range []ids.Generation{1, 3, 1} { // it never falls
		r.store.Know(g)
		for name, call := range calls {
			if err := call(); fault.Is(err, fault.WrongCluster) != (step > 0) {
				t.Errorf("step %d: %s after generation %d: %v", step, name, g, err)
			}
		}
	}
}
