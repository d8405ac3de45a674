package pack

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/node/store/disk"
)

// TestReclaim_LooksAtAllWhenAllAreInDoubt has chunks lose what needed them, and nobody says
// of which. The packs are looked at again soon, and not again and again.
func TestReclaim_LooksAtAllWhenAllAreInDoubt(t *testing.T) {
	k := newKeeper(t, disk.NewMemory())
	if err := k.put(0, 60); err != nil {
		t.Fatal(err)
	}
	k.unpin()
	k.p.Next(0, -1, -1) // closes the pack that chunks go to
	k.p.sealer.Wait()
	next := func() bool { _, ok := k.p.Next(0.25, time.Hour, time.Minute); return ok }
	look := func() (looks int) {
		for ; next(); looks++ {
			id, _ := k.p.Next(0.25, time.Hour, time.Minute)
			if _, err := k.p.Reclaim(context.Background(), id, k.rules(0.25)); err != nil {
				t.Fatal(err)
			}
		}
		return looks
	}
	k.p.DoubtAll()
	if looks := look(); looks == 0 || k.p.Count() != 60 {
		t.Errorf("%d chunks of 60 are left after %d looks", k.p.Count(), looks)
	}
	clear(k.needed)
	k.clock.add(2 * time.Second)
	if next() {
		t.Error("a pack is looked at that nobody doubts")
	}
	k.p.DoubtAll()
	if next() {
		t.Error("a pack is looked at again too soon")
	}
	k.clock.add(time.Minute)
	if looks := look(); looks == 0 || k.p.Count() > 20 { // what one pack holds: chunks go there now
		t.Errorf("%d chunks are left after %d looks", k.p.Count(), looks)
	}
}
