package intents

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/ids"
)

func TestLanes_RunOnceAndNotTooMany(t *testing.T) {
	l := lanes{busy: map[lane]bool{}}
	first := laneOf(dutyResume, 1, 3, 2)
	if first != laneOf(dutyResume, 1, 2, 3) || first == laneOf(dutyMarks, 1, 2, 3) {
		t.Error("a lane depends on its duty and its slices, not on their order")
	}
	if !l.begin(first) || l.begin(first) {
		t.Error("a lane begins once until it ends")
	}
	for i := range ids.Slice(maxLanes - 1) {
		if !l.begin(laneOf(dutyResume, 100+i)) {
			t.Fatalf("lane %d does not begin, of %d", i+2, maxLanes)
		}
	}
	other := laneOf(dutyPrepared, 1)
	if l.begin(other) {
		t.Errorf("a lane begins beside %d others", maxLanes)
	}
	if l.end(first); !l.begin(other) {
		t.Error("no lane begins once another has ended")
	}
}

func TestSettle_KeepsOneLaneFromTheOthers(t *testing.T) {
	var all sync.WaitGroup
	r := New(Options{Random: func() uint64 { return 1 }, Go: func(f func(context.Context)) { all.Go(func() { f(context.Background()) }) }})
	stuck, release := make(chan struct{}), make(chan struct{})
	var done [3]atomic.Int32
	work := []int{1, 2, 1, 2, 2}
	lanes := func(n *int) lane { return laneOf(dutyMarks, ids.Slice(*n)) }
	settle(r, work, lanes, func(_ context.Context, n *int) bool {
		if *n == 1 {
			stuck <- struct{}{}
			<-release
		}
		done[*n].Add(1)
		return true
	})
	<-stuck
	<-stuck
	for done[2].Load() < 3 { // the other lane goes on
		runtime.Gosched()
	}
	settle(r, work[:1], lanes, func(context.Context, *int) bool {
		t.Error("a busy lane began again")
		return true
	})
	close(release)
	all.Wait()
	if done[1].Load() != 2 || len(r.lanes.busy) != 0 {
		t.Errorf("%d pieces of the first lane are done and %d lanes are busy, want 2 and none", done[1].Load(), len(r.lanes.busy))
	}
}

func TestAlong_EndsWhereAPieceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := make([]*int, 100)
		for i := range work {
			work[i] = &i
		}
		var mu sync.Mutex
		var did []int
		along(t.Context(), work, func(_ context.Context, n *int) bool {
			time.Sleep(time.Millisecond) // the time goes on only when every piece before has been settled
			mu.Lock()
			defer mu.Unlock()
			did = append(did, *n)
			return *n != 10
		})
		if len(did) < 11 || len(did) > 11+laneFlight || !slices.Contains(did, 10) {
			t.Errorf("%d pieces were tried, want those up to the failed one and what was in flight", len(did))
		}
	})
}
