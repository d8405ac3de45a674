package collection

import (
	"cmp"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/tree"
)

// full is a world whose disks are short of space, with a slice of two members. Its terms
// leave an hour of the retention of 24.
func full(t *testing.T) (*world, *Collector, *geoconfig.SliceRow) {
	t.Helper()
	w, c := newCollector(t)
	w.vouched = hlc.FromWall(w.wall)
	w.short = true
	return w, c, rowOf(geoconfig.Normal, geoconfig.Normal)
}

// pass lets some time go by.
func (w *world) pass(d time.Duration) {
	w.clock += d
	w.wall = w.wall.Add(d)
	w.vouched = hlc.FromWall(w.wall)
}

// settle runs steps until there is nothing more to do.
func (w *world) settle(t *testing.T, c *Collector, row *geoconfig.SliceRow) {
	t.Helper()
	for range 20 {
		if !c.step(t.Context(), row) {
			return
		}
	}
	t.Fatal("20 steps do not settle it")
}

// kept is for how long versions of a slice are retained now.
func (w *world) kept(t *testing.T, c *Collector, row *geoconfig.SliceRow) time.Duration {
	t.Helper()
	return w.wall.Sub(c.horizon(t.Context(), row).Wall()).Round(time.Second)
}

const stepOf = 23 * time.Hour / yieldSteps

// TestYield_GivesUpTheOldestFirst has chunks that lost their last file at several times.
// Each goes once the retention has yielded so far, and none before an older one.
func TestYield_GivesUpTheOldestFirst(t *testing.T) {
	w, c, row := full(t)
	names := map[string]string{}
	for _, x := range []struct {
		name string
		age  time.Duration
	}{{"20 h", 20 * time.Hour}, {"10 h", 10 * time.Hour}, {"2 h", 2 * time.Hour}, {"half an hour", 30 * time.Minute}} {
		a := chunk.Sum([]byte(x.name))
		names[string(a[:])] = x.name
		w.put(t, 1, a, 0, hlc.FromWall(w.wall.Add(-x.age)))
	}
	w.settle(t, c, row)
	if len(w.done) > 0 {
		t.Fatalf("at once it gives up %v", w.done)
	}
	var order []string
	last := hlc.Time(0)
	for range yieldSteps + 4 {
		w.pass(yieldMost)
		w.settle(t, c, row)
		for _, op := range w.done {
			order = append(order, names[string(op.Unused)])
			if hlc.Time(op.Horizon) < last {
				t.Errorf("the horizon went back from %v to %v", last, op.Horizon)
			}
			last = hlc.Time(op.Horizon)
			b := w.db.NewBatch()
			if err := b.Unset(1, tree.RefsKey(chunk.Address(op.Unused))); err != nil {
				t.Fatal(err)
			}
			if err := b.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		w.done = nil
	}
	if len(order) != 3 || order[0] != "20 h" || order[1] != "10 h" || order[2] != "2 h" {
		t.Errorf("given up were %q, want those of 20, 10 and 2 hours and not what is retained in any case", order)
	}
	if got := w.kept(t, c, row); got < time.Hour || got > time.Hour+15*time.Minute+yieldMost {
		t.Errorf("in the end %v are retained, want the hour of upload_grace", got)
	}
	row.Policy.Coherence = 3 * time.Hour
	if got := w.kept(t, c, row); got != 6*time.Hour {
		t.Errorf("of a slice whose content follows within 3 h from now on %v are retained, want 6 h", got)
	}
}

// TestYield_SearchesSeldomForWhatBecameOldSince has given up all that it may: it goes on by
// steps that are worth while.
func TestYield_SearchesSeldomForWhatBecameOldSince(t *testing.T) {
	w, c, row := full(t)
	for range yieldSteps + 1 {
		w.settle(t, c, row)
		w.pass(yieldMost)
	}
	given := c.horizon(t.Context(), row)
	for range 4 {
		w.pass(yieldMost)
		w.settle(t, c, row)
		if got := c.horizon(t.Context(), row); got != given {
			t.Fatalf("a search for %v more", got.Wall().Sub(given.Wall()))
		}
	}
	w.pass(15 * time.Minute)
	w.settle(t, c, row)
	if got := w.kept(t, c, row); got != time.Hour {
		t.Errorf("%v are retained, want an hour", got)
	}
}

// TestYield_WaitsUntilAStepHasFreedSpace asks for steps at once, while packs are emptied,
// while operations are kept aside, and after a collection that failed.
func TestYield_WaitsUntilAStepHasFreedSpace(t *testing.T) {
	w, c, row := full(t)
	w.settle(t, c, row)
	near := func(what string, want time.Duration) {
		t.Helper()
		for range 3 {
			w.settle(t, c, row)
		}
		if got := w.kept(t, c, row); (got - want).Abs() > 10*time.Minute {
			t.Errorf("%s: %v are retained, want %v", what, got, want)
		}
	}
	near("at once", 24*time.Hour)
	w.pass(yieldMost)
	near("after a while", 24*time.Hour-stepOf)
	c.reclaiming.Store(true)
	w.pass(yieldMost)
	near("while packs are emptied", 24*time.Hour-stepOf)
	c.reclaiming.Store(false)
	w.aside = true
	near("with operations beside the log", 24*time.Hour-stepOf)
	w.aside = false
	near("when packs are emptied", 24*time.Hour-2*stepOf)
	w.put(t, 1, chunk.Sum([]byte("old")), 0, hlc.FromWall(w.wall.Add(-20*time.Hour)))
	w.failing = true
	for range 10 {
		w.pass(yieldMost)
		w.settle(t, c, row)
	}
	near("while collections fail", 24*time.Hour-3*stepOf) // the step that first finds it
	failed := c.horizon(t.Context(), row)
	b := w.db.NewBatch()
	if err := b.Set(1, tree.RefsKey(chunk.Sum([]byte("old"))), []byte("damaged")); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	w.failing = false
	for range 10 {
		w.pass(yieldMost)
		w.settle(t, c, row)
	}
	if got := c.horizon(t.Context(), row); got != failed {
		t.Errorf("while rows cannot be read the horizon moves by %v", got.Wall().Sub(failed.Wall()))
	}
}

// TestYield_EndsWhereThereIsRoom frees space after some steps, and fills the disk again.
func TestYield_EndsWhereThereIsRoom(t *testing.T) {
	w, c, row := full(t)
	for range 4 {
		w.settle(t, c, row)
		w.pass(yieldMost)
	}
	if got := w.kept(t, c, row); got > 24*time.Hour-2*stepOf {
		t.Fatalf("%v are retained, want steps of %v less than a day", got, stepOf)
	}
	given := c.horizon(t.Context(), row)
	w.short = false
	if got := w.kept(t, c, row); got != 24*time.Hour {
		t.Errorf("with room %v are retained, want 24 h", got)
	}
	w.short = true
	w.pass(time.Minute)
	w.settle(t, c, row)
	if got := c.horizon(t.Context(), row); got != given {
		t.Errorf("short again: the horizon is %v, want that of before: %v", got, given)
	}
	w.pass(48 * time.Hour)
	w.short = false
	c.horizon(t.Context(), row)
	w.short = true
	if got := w.kept(t, c, row); got != 24*time.Hour {
		t.Errorf("short again two days later: %v are retained at first, want 24 h", got)
	}
}

func TestYield_NeedsAllMembersAndSomethingToYield(t *testing.T) {
	w, c, row := full(t)
	row.Members[1].State = geoconfig.Failed
	for range 3 {
		w.settle(t, c, row)
		w.pass(yieldMost)
	}
	if got := w.kept(t, c, row); got != 24*time.Hour {
		t.Errorf("with a failed member %v are retained", got)
	}
	row.Members[1].State = geoconfig.Normal
	row.Policy.Coherence = 12 * time.Hour
	began := time.Duration(0)
	for range 3 {
		w.settle(t, c, row)
		began = cmp.Or(began, c.yields[1].since)
		w.pass(yieldMost)
	}
	if c.yields[1].since != began {
		t.Error("a slice that can give nothing up is searched again and again")
	}
	if got := w.kept(t, c, row); got != 24*time.Hour {
		t.Errorf("of a slice whose content follows within 12 h %v are retained", got)
	}
}
