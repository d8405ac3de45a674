package wire

import (
	"testing"
	"time"
)

func TestASpliceWaitsForItsShare(t *testing.T) {
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

func TestSplicesShareWhatAHostPassesOn(t *testing.T) {
	var s splices
	s.init(Limits{Splices: 10, PeerSplices: 10, SpliceRate: 10, SpliceBytes: 1200})
	for open, want := range []int{600, 600, 300, 200} {
		if got := s.share(); got != want {
			t.Errorf("%d are open: each has %d bytes a second each way, want %d", open, got, want)
		}
		if err := s.enter("peer"); err != nil {
			t.Fatal(err)
		}
	}
}
