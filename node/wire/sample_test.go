package wire

import (
	"testing"
	"time"
)

func TestRoundTrip_OfNoneIsLeast(t *testing.T) {
	for _, tt := range []struct {
		name           string
		sent, answered int64
		spent          uint32
		want           time.Duration
	}{
		{"less what the callee spent", 1_000_000, 4_000_000, 1000, 2 * time.Millisecond},
		{"the clock did not step", 5_000_000, 5_000_000, 0, leastSample},
		{"the callee says more than can be", 0, 1_000_000, 2000, -time.Millisecond},
	} {
		if got := roundTrip(tt.sent, tt.answered, tt.spent); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
