package route

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// even is a jitter that has none.
func even(d time.Duration) time.Duration { return d }

// fill enters until the window is full and returns the places.
func fill(t *testing.T, w *window) (places []*place) {
	t.Helper()
	for {
		now, cancel := context.WithCancel(t.Context())
		cancel()
		p, err := w.enter(now, 1000)
		if err != nil {
			return places
		}
		places = append(places, p)
	}
}

func TestWindow_GrowsWithAnswersAndHalvesOnceARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(512, even)
		first := fill(t, w)
		if len(first) != firstWindow {
			t.Fatalf("%d places at first, want %d", len(first), firstWindow)
		}
		for _, p := range first {
			p.leave(answered)
		}
		second := fill(t, w)
		if len(second) != 2*firstWindow {
			t.Fatalf("%d places behind as many answers, want %d", len(second), 2*firstWindow)
		}
		for _, p := range second {
			p.leave(refused)
		}
		if got := fill(t, w); len(got) != 0 {
			t.Fatalf("%d places right after refusals, want none", len(got))
		}
		time.Sleep(firstWait)
		synctest.Wait()
		third := fill(t, w)
		if len(third) != firstWindow {
			t.Errorf("%d places behind a round of refusals, want %d", len(third), firstWindow)
		}
		for _, p := range third {
			p.leave(answered)
		}
		if got := fill(t, w); len(got) > firstWindow+2 {
			t.Errorf("%d places behind a round of answers, want one more than %d", len(got), firstWindow)
		}
	})
}

func TestWindow_IsNeverShutForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(512, even)
		began := time.Now()
		const rounds = 40
		for range rounds {
			p, err := w.enter(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			p.leave(refused)
		}
		if took := time.Since(began); took < rounds/2*lastWait || took > rounds*lastWait {
			t.Errorf("%d refusals took %v: pauses are to grow up to %v", rounds, took, lastWait)
		}
		time.Sleep(lastWait)
		synctest.Wait()
		if got := fill(t, w); len(got) != 1 {
			t.Errorf("%d places, want the last one", len(got))
		}
	})
}

func TestWindow_LowestNumberEntersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(1, even)
		only, err := w.enter(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan uint64, 3)
		gone, cancel := context.WithCancel(t.Context())
		for _, number := range []uint64{9, 4, 7} {
			ctx := t.Context()
			if number == 4 {
				ctx = gone
			}
			go func() {
				if p, err := w.enter(ctx, number); err == nil {
					entered <- number
					p.leave(answered)
				}
			}()
		}
		synctest.Wait()
		cancel() // its place goes to the next
		synctest.Wait()
		only.leave(answered)
		if a, b := <-entered, <-entered; a != 7 || b != 9 {
			t.Errorf("%d entered before %d, want 7 before 9", a, b)
		}
	})
}

func TestWindow_ASlowOperationHoldsUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(1, even)
		slow, err := w.enter(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.enter(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		slow.leave(answered) // its place was given back already
		if got := fill(t, w); len(got) != 0 {
			t.Errorf("%d more places, want none", len(got))
		}
		p.leave(answered)
	})
}
