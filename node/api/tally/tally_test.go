package tally

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/usage"
	"cartwheel.dev/node/tree"
)

// cluster answers for nodes: a slice has two pages, each of its number of bytes.
type cluster struct {
	mu     sync.Mutex // guards the rest
	asked  []string
	refuse map[string]fault.Kind // by node and slice
	busy   int                   // answers that are Overloaded before all others
	hold   chan struct{}         // nil: nothing is held
	takes  time.Duration         // how long each page does
}

func (c *cluster) Space(ctx context.Context, node ids.Node, slice ids.Slice, behind []byte) (usage.Told, error) {
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return usage.Told{}, fault.Wrap(fault.Canceled, "tally.Space", "", ctx.Err())
		}
	}
	time.Sleep(c.takes)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := fmt.Sprintf("%s/%d", node, slice)
	c.asked = append(c.asked, at+string(behind))
	if c.busy > 0 {
		c.busy--
		return usage.Told{}, fault.E(fault.Overloaded, "tally.Space", at, "too much to do")
	}
	if kind := c.refuse[at]; kind != fault.None {
		return usage.Told{}, fault.E(kind, "tally.Space", "", "no word of "+at)
	}
	n := tree.Amount{Count: 1, Bytes: uint64(slice)}
	if len(behind) == 0 {
		return usage.Told{Objects: 3, Stored: 100, Usage: tree.Usage{Named: n, Snapshots: n}, Next: []byte("+")}, nil
	}
	return usage.Told{Usage: tree.Usage{Named: n, Waiting: n, Repeated: 5}}, nil
}

// pass lets time of the bubble pass, and waits for what it brings.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func newTally(t *testing.T, c *cluster) *Tally {
	t.Helper()
	tally := New(Options{Asker: c, Wall: time.Now})
	t.Cleanup(tally.Close)
	return tally
}

func TestTally_AddsOneCopyOfEachSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{refuse: map[string]fault.Kind{"a/2": fault.Unreachable, "a/3": fault.Unreachable, "b/3": fault.NotActive}, busy: 2}
		tally := newTally(t, c)
		if last, now := tally.Known(); last != nil || now != nil {
			t.Errorf("before a count: got %+v, %+v", last, now)
		}
		if err := tally.Start([]Slice{{1, []ids.Node{"a", "b"}}, {2, []ids.Node{"a", "b"}}, {3, []ids.Node{"a", "b"}}, {4, nil}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		last, now := tally.Known()
		if last == nil || now != nil {
			t.Fatalf("got %+v, %+v; want that it has ended", last, now)
		}
		if last.Objects != 6 || last.Stored != 200 || last.Named != (tree.Amount{Count: 4, Bytes: 6}) || last.Snapshots.Bytes != 3 || last.Waiting.Bytes != 3 || last.Repeated != 10 {
			t.Errorf("got %+v, want the sums of slices 1 and 2", last)
		}
		if last.Slices != 4 || last.Done != 4 || last.FailedTotal != 2 || last.Failed[0].Slice != 3 || !strings.Contains(last.Failed[0].Text, "b/3") || last.Failed[1].Slice != 4 {
			t.Errorf("got %+v, want that slices 3 and 4 failed", last)
		}
		want := []string{"a/1", "a/1", "a/1", "a/1+", "a/2", "b/2", "b/2+", "a/3", "b/3"}
		if !slices.Equal(c.asked, want) {
			t.Errorf("asked %q, want %q", c.asked, want)
		}
	})
}

func TestTally_GivesUpABusyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{busy: overloadedMost}
		tally := newTally(t, c)
		if err := tally.Start([]Slice{{1, []ids.Node{"a", "b"}}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if last, _ := tally.Known(); last == nil || last.FailedTotal != 0 || last.Objects != 3 || c.asked[overloadedMost] != "b/1" {
			t.Errorf("got %+v after %q, want the next node asked", last, c.asked)
		}
	})
}

func TestTally_MakesOneCountAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{hold: make(chan struct{})}
		tally := newTally(t, c)
		one := []Slice{{1, []ids.Node{"a"}}}
		for range 3 {
			if err := tally.Start(one); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if last, now := tally.Known(); last != nil || now == nil || now.Slices != 1 || now.Done != 0 || !now.EndedAt.IsZero() {
			t.Errorf("got %+v, %+v; want one under way", last, now)
		}
		close(c.hold)
		pass(time.Second)
		if len(c.asked) != 2 {
			t.Errorf("asked %q, want the pages of one count", c.asked)
		}
		first, _ := tally.Known()
		c.refuse = map[string]fault.Kind{"a/1": fault.Unreachable}
		if err := tally.Start(one); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if last, _ := tally.Known(); last == first || last.FailedTotal != 1 {
			t.Errorf("got %+v, want the newer count", last)
		}
	})
}

func TestTally_RestsAsLongAsAPageTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, want := range map[time.Duration]time.Duration{0: 2 * restLeast, 50 * time.Millisecond: 200 * time.Millisecond, 3 * time.Second: 6*time.Second + 2*restMost} {
			tally := newTally(t, &cluster{takes: takes})
			if err := tally.Start([]Slice{{1, []ids.Node{"a"}}}); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			if last, _ := tally.Known(); last == nil || last.EndedAt.Sub(last.BeganAt) != want {
				t.Errorf("two pages of %v: got %+v, want %v", takes, last, want)
			}
		}
	})
}

func TestTally_EndsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(t, &cluster{hold: make(chan struct{})})
		if err := tally.Start([]Slice{{1, []ids.Node{"a"}}}); err != nil {
			t.Fatal(err)
		}
		tally.Close()
		if last, now := tally.Known(); last != nil || now != nil {
			t.Errorf("got %+v, %+v; want that half a count is none", last, now)
		}
		if err := tally.Start(nil); !fault.Is(err, fault.Closed) {
			t.Errorf("got %v, want %v", err, fault.Closed)
		}
	})
}

func TestTally_RefusesTooManySlices(t *testing.T) {
	tally := newTally(t, &cluster{})
	if err := tally.Start(make([]Slice, MaxSlices+1)); !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "cartwheel space PATH") {
		t.Errorf("got %v, want %v with a remedy", err, fault.TooLarge)
	}
}
