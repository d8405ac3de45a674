package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/repair"
)

// copies are the whole copies of slices that all are to have three, and who waits.
type copies map[ids.Slice]int

func (c copies) queue() *Queue {
	return New(func(id ids.Slice) repair.Claim { return repair.Claim{Slice: id, Copies: c[id], Level: 3} },
		func() time.Duration { return 0 })
}

// copying is a slice that has its turn.
type copying struct {
	slice ids.Slice
	ctx   context.Context
	end   func()
}

// begin has a slice wait, and returns once it does.
func begin(ctx context.Context, s *Queue, id ids.Slice, to chan copying) {
	go func() {
		mine, end, err := s.Take(ctx, id)
		if err == nil {
			to <- copying{id, mine, end}
		}
	}()
	synctest.Wait()
}

func waiting(s *Queue) (out []ids.Slice) {
	claims, _ := s.List()
	for _, c := range claims {
		out = append(out, c.Slice)
	}
	return out
}

func TestQueue_GoToTheFewestCopiesOneAtATime(t *testing.T) {
	synctest.Test(t, checkGoToTheFewestCopiesOneAtATime)
}

func checkGoToTheFewestCopiesOneAtATime(t *testing.T) {
	c := copies{1: 2, 2: 2, 3: 1, 4: 1, 5: 3, 6: 2}
	s, to := c.queue(), make(chan copying)
	begin(t.Context(), s, 3, to)
	first := <-to
	for _, id := range []ids.Slice{5, 2, 1, 6, 4} {
		begin(t.Context(), s, id, to)
	}
	if got := waiting(s); !slices.Equal(got, []ids.Slice{3, 4, 1, 2, 6, 5}) {
		t.Errorf("got the order %v", got)
	}
	c[6] = 0 // it loses its copies while it waits
	order := []ids.Slice{first.slice}
	for x := first; len(order) < 6; order = append(order, x.slice) {
		select {
		case early := <-to:
			t.Fatalf("slice %d is copied beside %d", early.slice, x.slice)
		default:
		}
		x.end()
		x = <-to
		synctest.Wait()
		defer x.end()
	}
	if want := "[3 6 4 1 2 5]"; fmt.Sprint(order) != want {
		t.Errorf("got %v, want %s", order, want)
	}
}

func TestQueue_ACopyGivesWayToFewerCopies(t *testing.T) {
	synctest.Test(t, checkACopyGivesWayToFewerCopies)
}

func checkACopyGivesWayToFewerCopies(t *testing.T) {
	c := copies{1: 2, 2: 2, 3: 1}
	s, to := c.queue(), make(chan copying)
	begin(t.Context(), s, 1, to)
	first := <-to
	begin(t.Context(), s, 2, to)
	if first.ctx.Err() != nil {
		t.Fatal("a copy gave way to a slice with as many copies")
	}
	begin(t.Context(), s, 3, to)
	<-first.ctx.Done()
	if cause := context.Cause(first.ctx); cause == nil || errors.Is(cause, context.Canceled) {
		t.Errorf("it ended because of %v, want the other slice named", cause)
	}
	first.end()
	if x := <-to; x.slice != 3 {
		t.Errorf("slice %d goes on, want the one with a single copy", x.slice)
	} else {
		c[2] = 0
		s.Look() // it lost its copies meanwhile
		<-x.ctx.Done()
		x.end()
	}
	if x := <-to; x.slice != 2 {
		t.Errorf("slice %d goes on, want the one that lost its copies", x.slice)
	}
}

func TestQueue_LeaveTheQueueWithTheirContext(t *testing.T) {
	synctest.Test(t, checkLeaveTheQueueWithTheirContext)
}

func checkLeaveTheQueueWithTheirContext(t *testing.T) {
	s, to := copies{}.queue(), make(chan copying)
	begin(t.Context(), s, 1, to)
	first := <-to
	ctx, cancel := context.WithCancel(t.Context())
	begin(ctx, s, 2, to)
	begin(t.Context(), s, 3, to)
	cancel()
	synctest.Wait()
	if got := waiting(s); slices.Contains(got, 2) {
		t.Errorf("%v wait, though the context of slice 2 has ended", got)
	}
	first.end()
	if x := <-to; x.slice != 3 {
		t.Errorf("slice %d goes on, want the next one", x.slice)
	}
}

func TestQueue_AFailedSliceKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, checkAFailedSliceKeepsNobodyWaiting)
}

func checkAFailedSliceKeepsNobodyWaiting(t *testing.T) {
	s, to, now := copies{1: 1, 2: 2, 3: 2}.queue(), make(chan copying), time.Duration(0)
	s.clock = func() time.Duration { return now }
	for _, rest := range []time.Duration{leastRest, 2 * leastRest, 4 * leastRest} {
		s.Note(1, true)
		begin(t.Context(), s, 2, to)
		first := <-to
		begin(t.Context(), s, 1, to)
		begin(t.Context(), s, 3, to)
		if got := waiting(s); first.ctx.Err() != nil || !slices.Equal(got, []ids.Slice{2, 3, 1}) {
			t.Fatalf("got the order %v while the slice that failed rests", got)
		}
		now += rest
		if s.Look(); first.ctx.Err() == nil {
			t.Fatalf("the slice still waits after %v", rest)
		}
		first.end()
		for _, want := range []ids.Slice{1, 3} {
			x := <-to
			if x.slice != want {
				t.Errorf("slice %d goes on, want %d", x.slice, want)
			}
			x.end()
		}
	}
	s.Note(1, false)
	s.Note(1, true)
	if got := s.failed[1].rest; got != leastRest {
		t.Errorf("it rests for %v after it was copied once, want %v", got, leastRest)
	}
}
