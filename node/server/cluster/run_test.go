package cluster_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/cluster"
)

func TestRefresh_FailsWithoutTheStore(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"a plain failure": {errors.New("no route"), fault.Unreachable},
		"a closed store":  {fault.E(fault.Closed, "test", "", ""), fault.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			store := &away{Store: b.store, err: c.err}
			d := b.open(func(o *cluster.Options) { o.Store = store })
			if err := d.Refresh(t.Context()); !fault.Is(err, c.want) {
				t.Errorf("got %v, want kind %v", err, c.want)
			}
			if d.Away().IsZero() {
				t.Error("the store counts as reachable")
			}
			store.fail(nil)
			refresh(t, d)
			if !d.Away().IsZero() {
				t.Errorf("the store counts as away since %v", d.Away())
			}
		})
	}
}

func TestRun_FollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		d := b.open(nil)
		stop := follow(t, d)
		synctest.Wait()
		if d.Cluster().ID != "c1" || d.Revision() != 1 {
			t.Errorf("got cluster %q at revision %d, want c1 at 1", d.Cluster().ID, d.Revision())
		}
		b.apply(made(7))
		synctest.Wait()
		if r, ok := d.Slice(7); !ok || r.Revision != 2 {
			t.Errorf("got %+v, %v, want slice 7 at revision 2", r, ok)
		}
		stop()
		b.apply(made(8))
		synctest.Wait()
		if _, ok := d.Slice(8); ok {
			t.Error("a directory that was stopped follows on")
		}
	})
}

func TestRun_KeepsWhatAPeerKnewBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.apply(made(7))
		d := b.open(nil)
		d.Learn(row(7, 2)) // a peer has heard of a swap that the store brings later
		follow(t, d)
		synctest.Wait()
		if r, _ := d.Slice(7); r.Epoch != 2 || r.Revision != 0 {
			t.Errorf("got epoch %d at revision %d, want the peer's epoch 2", r.Epoch, r.Revision)
		}
		b.apply(moved(7, 1))
		synctest.Wait()
		if r, _ := d.Slice(7); r.Epoch != 2 || r.Revision != 3 {
			t.Errorf("got epoch %d at revision %d, want 2 at 3", r.Epoch, r.Revision)
		}
	})
}

func TestRun_GoesOnWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		calls := make(chan struct{})
		store := &away{Store: b.store, err: errors.New("no route"), followed: calls}
		var log bytes.Buffer
		d := b.open(func(o *cluster.Options) {
			o.Store, o.Retry, o.Logger = store, time.Second, slog.New(slog.NewTextHandler(&log, nil))
		})
		lines := func() int { return bytes.Count(log.Bytes(), []byte("\n")) }
		began := time.Now()
		follow(t, d)
		<-calls
		// The waits double up to a limit, so that a store that comes back is
		// not asked by every node at once, and is noticed soon.
		for i, want := range []time.Duration{1, 3, 7, 12, 17} {
			<-calls
			if got := time.Since(began); got != want*time.Second {
				t.Errorf("try %d: after %v, want %v", i+2, got, want*time.Second)
			}
		}
		if since := d.Away(); !since.Equal(began) {
			t.Errorf("away since %v, want %v", since, began)
		}
		if lines() != 1 {
			t.Errorf("the log tells it %d times, want once:\n%s", lines(), &log)
		}
		changed := d.Changed()
		store.fail(nil)
		<-calls
		<-changed
		if !d.Away().IsZero() || d.Revision() != 1 {
			t.Errorf("away since %v at revision %d, want reached at 1", d.Away(), d.Revision())
		}
		if lines() != 2 {
			t.Errorf("the log has %d lines, want a second for the end:\n%s", lines(), &log)
		}

		<-calls
		synctest.Wait() // this call waits for the next change
		store.fail(errors.New("no route again"))
		b.apply(geoconfig.Batch{Sites: []geoconfig.Site{{Name: "rome"}}})
		<-calls
		failed := time.Now()
		<-calls
		if got := time.Since(failed); got != time.Second {
			t.Errorf("after a success, the first wait is %v, want %v", got, time.Second)
		}
	})
}
