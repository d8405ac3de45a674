package budget

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// bubble runs a test in virtual time, with a line of so many bytes per second.
func bubble(t *testing.T, perSecond float64, f func(t *testing.T, l *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := newLine(func() time.Duration { return time.Since(began) })
		l.set(perSecond, geoconfig.DefaultShares())
		f(t, l)
		l.close()
	})
}

// pass sends through a line.
func (l *line) pass(ctx context.Context, peer string, c Class, bytes int) error {
	w, err := l.enter(peer, c, bytes)
	if w == nil {
		return err
	}
	return l.await(ctx, w, c)
}

// flood keeps so many calls of a class waiting until ctx ends, each of so many bytes.
func flood(ctx context.Context, all *sync.WaitGroup, l *line, peer string, c Class, calls, bytes int) {
	for range calls {
		all.Go(func() {
			for ctx.Err() == nil {
				if l.pass(ctx, peer, c, bytes) != nil {
					return
				}
			}
		})
	}
}

// within reports whether a figure is what it should be but for a part of it.
func within(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// sent is what passed of a class, in bytes on the line.
func (l *line) onLine(c Class) float64 { return float64(onTheLine(int64(l.passed()[c].Bytes))) }

func TestLine_KeepsToItsRate(t *testing.T) {
	for _, size := range []int{1 << 10, 100 << 10, 4 << 20} {
		t.Run(fmt.Sprint(size, " bytes a call"), func(t *testing.T) {
			const perSecond, seconds = 2_500_000, 60
			bubble(t, perSecond, func(t *testing.T, l *line) {
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				var all sync.WaitGroup
				flood(ctx, &all, l, "p", Foreground, 8, size)
				all.Wait()
				most := float64(perSecond*seconds + leastBurst + 125_000 + size + size/24)
				if got := l.onLine(Foreground); got > 1.001*most || got < 0.97*perSecond*seconds {
					t.Errorf("%.0f bytes in %d s, want at most %.0f, and not much less", got, seconds, most)
				}
			})
		})
	}
}

func TestLine_LetsAllPassWithoutARate(t *testing.T) {
	bubble(t, 0, func(t *testing.T, l *line) {
		before := time.Now()
		for range 1000 {
			if err := l.pass(t.Context(), "p", Rebalancing, 4<<20); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(before) != 0 || l.passed()[Rebalancing].Bytes != 4000<<20 {
			t.Errorf("took %v, counted %+v", time.Since(before), l.passed())
		}
	})
}

func TestLine_GivesEachClassItsShare(t *testing.T) {
	const perSecond, seconds = 2_500_000, 300
	bubble(t, perSecond, func(t *testing.T, l *line) {
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for _, c := range Classes() {
			flood(ctx, &all, l, "p", c, 4, 64<<10)
		}
		all.Wait()
		for c, part := range map[Class]float64{Foreground: 0.83, Replication: 0.10, Repair: 0.05, Rebalancing: 0.02} {
			if got := l.onLine(c) / (perSecond * seconds); !within(got, part, 0.1) {
				t.Errorf("%v got %.3f of the rate, want %.3f", c, got, part)
			}
		}
	})
}

func TestLine_GivesALowerClassWhatHigherOnesLeave(t *testing.T) {
	const perSecond, seconds = 2_500_000, 60
	bubble(t, perSecond, func(t *testing.T, l *line) {
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		var all sync.WaitGroup
		flood(ctx, &all, l, "p", Rebalancing, 4, 64<<10)
		all.Go(func() { // a quarter of the rate
			for ctx.Err() == nil {
				if err := l.pass(ctx, "q", Foreground, 64<<10); err != nil {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After((64<<10)*4*time.Second/perSecond - 10*time.Millisecond):
				}
			}
		})
		all.Wait()
		if got := l.onLine(Rebalancing) / (perSecond * seconds); got < 0.6 || got > 0.85 {
			t.Errorf("rebalancing got %.2f of the rate beside a quarter of it", got)
		}
		const grant = time.Duration(1.05 * (64 << 10) / perSecond * 1e9)
		calls := l.passed()[Foreground].Bytes / (64 << 10)
		if wait := l.passed()[Foreground].Waited / time.Duration(calls); wait > grant {
			t.Errorf("a call of the foreground waited %v in the mean, longer than one of rebalancing takes", wait)
		}
	})
}

func TestLine_HasPeersTakeTurns(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var all sync.WaitGroup
		flood(ctx, &all, l, "greedy", Foreground, 50, 64<<10)
		modest := 0
		all.Go(func() {
			for l.pass(ctx, "modest", Foreground, 64<<10) == nil {
				modest++
			}
		})
		all.Wait()
		if total := 20e6 / float64(onTheLine(64<<10)); float64(modest) < 0.4*total {
			t.Errorf("one call at a time got %d of %.0f turns beside fifty of another peer", modest, total)
		}
	})
}

func TestLine_ForgetsACallThatGivesUp(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		if err := l.pass(t.Context(), "p", Foreground, 10_000_000); err != nil { // overdraws
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.pass(ctx, "p", Foreground, 50_000_000); !fault.Is(err, fault.TimedOut) {
			t.Errorf("got %v", err)
		}
		before := time.Now()
		if err := l.pass(t.Context(), "p", Foreground, 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took > 10*time.Second {
			t.Errorf("the next call waited %v, as for the one that gave up", took)
		}
		if l.waiting != 0 || len(l.queues[Foreground].flows) != 0 || l.queues[Foreground].bytes != 0 {
			t.Errorf("something stayed: %+v", l.queues)
		}
	})
}

func TestLine_LetsWaitersGoWhenTheRateEnds(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- l.pass(t.Context(), "p", Repair, 100_000_000) }()
		}
		synctest.Wait()
		before := time.Now()
		l.set(0, geoconfig.Shares{})
		if err1, err2 := <-done, <-done; err1 != nil || err2 != nil || time.Since(before) != 0 {
			t.Errorf("got %v and %v after %v", err1, err2, time.Since(before))
		}
	})
}

func TestLine_HurriesWhenTheRateRises(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		_ = l.pass(t.Context(), "p", Repair, 100_000_000)
		before := time.Now()
		done := make(chan error, 1)
		go func() { done <- l.pass(t.Context(), "p", Repair, 1) }()
		synctest.Wait()
		l.set(100_000_000, geoconfig.DefaultShares())
		if err := <-done; err != nil || time.Since(before) > 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(before))
		}
	})
}

func TestLine_CloseFailsTheCallsThatWait(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		done := make(chan error, 1)
		_ = l.pass(t.Context(), "p", Repair, 100_000_000)
		go func() { done <- l.pass(t.Context(), "p", Repair, 1) }()
		synctest.Wait()
		l.close()
		if err := <-done; !fault.Is(err, fault.Closed) {
			t.Errorf("got %v", err)
		}
		if err := l.pass(t.Context(), "p", Repair, 1); !fault.Is(err, fault.Closed) {
			t.Errorf("a later call got %v", err)
		}
	})
}

func TestLine_BoundsTheCallsThatWait(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		_ = l.pass(t.Context(), "p", Repair, 100_000_000)
		for i := range maxWaiting {
			if w, err := l.enter("p", Repair, 1); w == nil || err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if _, err := l.enter("p", Foreground, 1); !fault.Is(err, fault.Overloaded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLine_ChargesOperationsAndKeepsHalfForContent has operations take twice the
// rate: they never wait, and content gets half of it.
func TestLine_ChargesOperationsAndKeepsHalfForContent(t *testing.T) {
	const perSecond, seconds = 1_000_000, 60
	for what, c := range map[string]struct{ operations, want float64 }{
		"a quarter of the rate": {0.25, 0.75}, "twice the rate": {2, 0.5},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, perSecond, func(t *testing.T, l *line) {
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				var all sync.WaitGroup
				flood(ctx, &all, l, "p", Repair, 4, 16<<10)
				all.Go(func() {
					for range seconds {
						l.charge(int64(c.operations*perSecond), time.Second)
						<-time.After(time.Second)
					}
				})
				all.Wait()
				if got := l.onLine(Repair) / (perSecond * seconds); !within(got, c.want, 0.08) {
					t.Errorf("content got %.2f of the rate, want %.2f", got, c.want)
				}
			})
		})
	}
}

func TestDemand_IsWhatWasSentAndWhatWaits(t *testing.T) {
	bubble(t, 1_000_000, func(t *testing.T, l *line) {
		_ = l.pass(t.Context(), "p", Repair, 2_400_000)
		for range 2 {
			if _, err := l.enter("p", Foreground, 240_000); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2600 * time.Millisecond) // one of them passes
		if got := l.demand(); got != (byClass{Repair: 2_500_000, Foreground: 750_000}) {
			t.Errorf("got %v", got)
		}
		if got := l.demand(); got != (byClass{Foreground: 250_000}) {
			t.Errorf("got %v then", got)
		}
	})
}
