package prefetch

import (
	"strconv"
	"testing"
	"time"
)

func TestBelow_AsksOnceInAWhile(t *testing.T) {
	var now time.Duration
	b := NewBelow(func() time.Duration { return now })
	ask := func(when string, want uint32) {
		t.Helper()
		if got := b.Bytes(7, "d"); got != want {
			t.Errorf("%s: %d bytes are asked for, want %d", when, got, want)
		}
	}
	ask("at first", belowBytes)
	now = belowAgain - 1
	ask("a moment later", 0)
	now = belowAgain
	ask("after a while", belowBytes)
	ask("at once again", 0)
	b.Clear()
	ask("after all was dropped", belowBytes)
}

func TestBelow_IsBounded(t *testing.T) {
	b := NewBelow(func() time.Duration { return 0 })
	for i := range 3 * maxBrought {
		b.Bytes(7, strconv.Itoa(i))
	}
	if len(b.by) > maxBrought {
		t.Errorf("%d names are kept", len(b.by))
	}
}
