package relay

import (
	"testing"
	"time"
)

func TestPace_WaitsForTheShare(t *testing.T) {
	var p pace
	now := time.Hour
	if d := p.take(now, 250, 1000); d != 0 {
		t.Errorf("within what may go ahead: waits %v", d)
	}
	if d := p.take(now, 500, 1000); d != 500*time.Millisecond {
		t.Errorf("half a second beyond: waits %v", d)
	}
	now += 10 * time.Second
	if d := p.take(now, 250, 1000); d != 0 {
		t.Errorf("after a pause: waits %v; what was not used is not owed", d)
	}
	passed := 0
	for start := now; now < start+time.Minute; passed += 100 {
		now += p.take(now, 100, 1000)
	}
	if passed < 59_000 || passed > 61_000 {
		t.Errorf("%d bytes in a minute, want 60,000", passed)
	}
}

func TestUsage_SharesBytesEqually(t *testing.T) {
	u := newUsage(Limits{Open: 10, PerPeer: 10, Rate: 10, Bytes: 1200})
	for open, want := range []int{600, 600, 300, 200} {
		if got := u.share(); got != want {
			t.Errorf("%d are open: each has %d bytes a second each way, want %d", open, got, want)
		}
		if err := u.acquire("peer", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsage_Limits(t *testing.T) {
	u := newUsage(Limits{Open: 3, PerPeer: 2, Rate: 2, Bytes: 1200})
	now := time.Unix(1000, 0)
	for i, step := range []struct {
		peer    string
		after   time.Duration
		release bool // first, one of the same peer
		ok      bool
	}{
		{"a", 0, false, true},
		{"a", 0, false, true},
		{"a", 0, false, false}, // two of one peer
		{"b", 0, false, true},
		{"c", 0, false, false}, // three in all
		{"b", 0, true, false},  // the first burst is over
		{"b", 400 * time.Millisecond, false, false},
		{"b", 100 * time.Millisecond, false, true}, // two a second
	} {
		now = now.Add(step.after)
		if step.release {
			u.release(step.peer)
		}
		if err := u.acquire(step.peer, now); (err == nil) != step.ok {
			t.Errorf("step %d: got %v", i, err)
		}
	}
}
