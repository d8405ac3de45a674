package diskspace_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/diskspace"
	"cartwheel.dev/node/store"
)

// fakeDisk has a total and a free part, either of which may be unknown (0).
type fakeDisk struct {
	mu    sync.Mutex // guards usage
	usage store.Usage
}

func (d *fakeDisk) Usage() store.Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usage
}

func (d *fakeDisk) Free(u store.Usage) (int64, bool) { return u.Disk.Free, u.Disk.Total > 0 }

func (d *fakeDisk) Prepare() error { return nil }

func (d *fakeDisk) setFree(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usage.Disk.Free = bytes
}

func sized(total, free int64) *fakeDisk {
	d := &fakeDisk{}
	d.usage.Disk.Total, d.usage.Disk.Free = total, free
	return d
}

func options(d *fakeDisk) diskspace.Options {
	return diskspace.Options{Self: "a", Disk: d, ReserveBytes: 80, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
		Leading: func() []geoconfig.SliceRow { return nil }, Node: func(ids.Node) (geoconfig.Node, bool) { return geoconfig.Node{}, false }}
}

func TestFree_IsTheLesserOfDiskAndConfiguration(t *testing.T) {
	for _, test := range []struct {
		name            string
		disk            *fakeDisk
		capacity        int64
		free, capacity2 int64
	}{
		{"the disk alone", sized(1000, 300), 0, 300, 1000},
		{"the configuration leaves less", sized(1000, 300), 200, 140, 200},
		{"the disk leaves less", sized(1000, 300), 900, 300, 900},
		{"the system does not say", sized(0, 0), 200, 140, 200},
		{"more is stored than should be", sized(1000, 300), 50, -10, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.disk.usage.Journal, test.disk.usage.Chunks, test.disk.usage.Meta = 10, 20, 30
			o := options(test.disk)
			o.CapacityBytes = test.capacity
			g, u := diskspace.New(o), test.disk.Usage()
			if got := g.Free(u); got != test.free {
				t.Errorf("free: got %d, want %d", got, test.free)
			}
			if got := g.Capacity(u); got != test.capacity2 {
				t.Errorf("capacity: got %d, want %d", got, test.capacity2)
			}
		})
	}
}

func TestRun_IsFullUntilAnEighthMoreIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sized(1000, 81)
		o, changes := options(d), 0
		o.Changed = func() { changes++ }
		g := diskspace.New(o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.Run(ctx)
		for _, step := range []struct {
			free    int64
			full    bool
			changes int
		}{{81, false, 0}, {80, false, 0}, {79, true, 1}, {85, true, 1}, {89, true, 1}, {90, false, 2}, {81, false, 2}} {
			d.setFree(step.free)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if g.IsFull() != step.full || g.IsFullFor(7) != step.full || changes != step.changes {
				t.Errorf("with %d bytes free: full is %v after %d changes, want %v after %d", step.free, g.IsFull(), changes, step.full, step.changes)
			}
		}
	})
}

func TestIsFullFor_NamesSlicesWithAFullMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(sized(1000, 500))
		member := func(n ids.Node, s geoconfig.MemberState) geoconfig.Member { return geoconfig.Member{Node: n, State: s} }
		o.Leading = func() []geoconfig.SliceRow {
			return []geoconfig.SliceRow{
				{ID: 1, Members: []geoconfig.Member{member("a", geoconfig.Normal), member("full", geoconfig.Normal)}},
				{ID: 2, Members: []geoconfig.Member{member("a", geoconfig.Normal), member("roomy", geoconfig.Normal)}},
				{ID: 3, Members: []geoconfig.Member{member("a", geoconfig.Normal), member("full", geoconfig.Failed)}},
			}
		}
		o.Node = func(id ids.Node) (geoconfig.Node, bool) {
			used := map[ids.Node]int64{"a": 1000, "full": 921, "roomy": 920}
			return geoconfig.Node{ID: id, CapacityBytes: 1000, UsedBytes: used[id]}, true
		}
		g := diskspace.New(o)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.Run(ctx)
		synctest.Wait()
		if !g.IsFullFor(1) || g.IsFullFor(2) || g.IsFullFor(3) || g.IsFull() {
			t.Errorf("got %v %v %v, want slice 1 alone to be full", g.IsFullFor(1), g.IsFullFor(2), g.IsFullFor(3))
		}
	})
}
