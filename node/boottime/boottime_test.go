package boottime

import (
	"testing"
	"time"
)

func TestDefault_NeverRunsBack(t *testing.T) {
	clock := Default()
	began, first := time.Now(), clock()
	last := first
	for time.Since(began) < 50*time.Millisecond {
		v := clock()
		if v < last {
			t.Fatalf("got %v after %v", v, last)
		}
		last = v
	}
	if d := clock() - first; d < 30*time.Millisecond || d > 5*time.Second {
		t.Fatalf("50 ms took %v on the clock", d)
	}
}

func TestCorrected_CountsASuspensionButNoStepBack(t *testing.T) {
	var mono time.Duration
	wall := time.Unix(1000, 0)
	clock := corrected(func() time.Duration { return mono }, func() time.Time { return wall })
	for _, step := range []struct {
		what             string
		mono, wall, want time.Duration
	}{
		{"both go on", 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
		{"wall time set back an hour", time.Second, -time.Hour, 1300 * time.Millisecond},
		{"wall time slewed half a second", time.Second, 1500 * time.Millisecond, 2300 * time.Millisecond},
		{"suspended for ten seconds", time.Second, 11 * time.Second, 13300 * time.Millisecond},
		{"both stand", 0, 0, 13300 * time.Millisecond},
	} {
		mono, wall = mono+step.mono, wall.Add(step.wall)
		if got := clock(); got != step.want {
			t.Fatalf("%s: got %v, want %v", step.what, got, step.want)
		}
	}
}
