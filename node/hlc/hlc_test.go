package hlc

import (
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"pgregory.net/rapid"
)

func fixed(at *time.Time) func() time.Time { return func() time.Time { return *at } }

func TestNow_RisesWhileTheClockStandsOrStepsBack(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := New(fixed(&at))
	last := c.Now()
	if d := at.Sub(last.Wall()); d < 0 || d >= 1<<logicalBits {
		t.Fatalf("first timestamp is %v away from the clock, want within a tick below", d)
	}
	for i := range 100_000 {
		if i == 50_000 {
			at = at.Add(-time.Hour)
		}
		next := c.Now()
		if next <= last {
			t.Fatalf("step %d: got %v after %v", i, next, last)
		}
		last = next
	}
	at = at.Add(2 * time.Hour)
	if got := c.Now(); got != FromWall(at) {
		t.Fatalf("after the clock went on: got %v, want %v", got, FromWall(at))
	}
}

func TestObserve_OrdersAndRefusesTheFarFuture(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := New(fixed(&at))
	ahead := FromWall(at.Add(MaxAhead)) + 7
	if err := c.Observe(ahead); err != nil {
		t.Fatalf("a timestamp at the limit: %v", err)
	}
	if got := c.Now(); got <= ahead {
		t.Fatalf("got %v, want above %v", got, ahead)
	}
	before := c.Last()
	err := c.Observe(FromWall(at.Add(MaxAhead + time.Millisecond)))
	if !fault.Is(err, fault.ClockSkew) {
		t.Fatalf("beyond the limit: got %v, want kind %v", err, fault.ClockSkew)
	}
	if c.Last() != before {
		t.Fatal("a refused timestamp moved the clock")
	}
	if err := c.Observe(1); err != nil || c.Last() != before {
		t.Fatalf("an old timestamp: err %v, clock %v, want nil and %v", err, c.Last(), before)
	}
	stored := FromWall(at.Add(time.Hour))
	c.Raise(stored)
	if got := c.Now(); got != stored+1 {
		t.Fatalf("after Raise: got %v, want %v", got, stored+1)
	}
}

// TestObserve_CannotWalkTheClockAway has a peer send timestamps again and again
// that are as far ahead of the newest one as possible. The limit counts from
// physical time.
func TestObserve_CannotWalkTheClockAway(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := New(fixed(&at))
	limit := FromWall(at.Add(MaxAhead)) | logicalMask
	for range 1000 {
		_ = c.Observe(FromWall(c.Now().Wall().Add(MaxAhead))) // most are refused
		if last := c.Last(); last > limit {
			t.Fatalf("the clock is at %v, want %v at most", last, limit)
		}
	}
	at = at.Add(2 * MaxAhead)
	if got := c.Now(); got != FromWall(at) {
		t.Errorf("later: got %v, want physical time, %v", got, FromWall(at))
	}
}

func TestNow_ConcurrentTimestampsDiffer(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	c := New(fixed(&at))
	const workers, each = 8, 2000
	got := make([][]Time, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				got[w] = append(got[w], c.Now())
			}
		})
	}
	wg.Wait()
	seen := make(map[Time]bool)
	for _, times := range got {
		for _, v := range times {
			if seen[v] {
				t.Fatalf("%v was given twice", v)
			}
			seen[v] = true
		}
	}
}

func TestObserve_RespectsCauseUnderSkew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Unix(1_700_000_000, 0)
		walls := []time.Time{base, base.Add(time.Duration(rapid.Int64Range(-400, 400).Draw(t, "skew_ms")) * time.Millisecond)}
		clocks := []*Clock{New(fixed(&walls[0])), New(fixed(&walls[1]))}
		for range rapid.IntRange(1, 50).Draw(t, "messages") {
			from := rapid.IntRange(0, 1).Draw(t, "from")
			step := time.Duration(rapid.IntRange(0, 1000).Draw(t, "step_us")) * time.Microsecond
			walls[0], walls[1] = walls[0].Add(step), walls[1].Add(step)
			sent := clocks[from].Now()
			if err := clocks[1-from].Observe(sent); err != nil {
				t.Fatal(err)
			}
			if got := clocks[1-from].Now(); got <= sent {
				t.Fatalf("received at %v what was sent at %v", got, sent)
			}
		}
	})
}
