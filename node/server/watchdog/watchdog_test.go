package watchdog

import (
	"testing"

	"cartwheel.dev/node/server/operate"
)

func TestLook_StallsWhereNothingMovesForLong(t *testing.T) {
	for _, c := range []struct {
		name string
		at   func(look uint64) operate.Progress
		full bool
		want bool
	}{
		{"an idle node", func(n uint64) operate.Progress { return operate.Progress{Turns: n, Appended: 7, Written: 7} }, false, false},
		{"a busy node", func(n uint64) operate.Progress { return operate.Progress{Turns: n, Appended: n + 3, Written: n} }, false, false},
		{"a log that stands", func(n uint64) operate.Progress { return operate.Progress{Turns: n, Appended: 8, Written: 7} }, false, true},
		{"a log without room", func(n uint64) operate.Progress { return operate.Progress{Turns: n, Appended: 8, Written: 7} }, true, false},
		{"a loop that stands", func(uint64) operate.Progress { return operate.Progress{Turns: 5} }, true, true},
		{"a loop that stands now and then", func(n uint64) operate.Progress { return operate.Progress{Turns: n / 20} }, false, false},
	} {
		d := New(Options{})
		stalled := uint64(0)
		for n := uint64(1); n <= 3*looks && stalled == 0; n++ {
			if d.look(c.at(n), c.full) {
				stalled = n
			}
		}
		if (stalled > 0) != c.want || c.want && stalled < looks {
			t.Errorf("%s: stalled at look %d, want it to stall: %v", c.name, stalled, c.want)
		}
	}
}
