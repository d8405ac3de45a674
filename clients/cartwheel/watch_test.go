package cartwheel

import (
	"testing"
	"time"
)

func TestSuspension_IsNoticedOnce(t *testing.T) {
	start := time.Now()
	s := newSuspension(time.Hour, start)
	for _, x := range []struct {
		name        string
		boot, awake time.Duration
		want        bool
	}{
		{"a moment later", time.Hour + time.Second, time.Second, false},
		{"the clocks drift", time.Hour + 2*time.Second + slept, 2 * time.Second, false},
		{"the machine slept", 2 * time.Hour, 3 * time.Second, true},
		{"it did not since", 2*time.Hour + time.Second, 4 * time.Second, false},
	} {
		if got := s.since(x.boot, start.Add(x.awake)); got != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
	}
	s = newSuspension(time.Hour, start)
	if !s.since(2*time.Hour, start) {
		t.Error("a sleep before the first look is not noticed")
	}
}
