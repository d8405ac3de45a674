package boottime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDefault_ShowsBoottime(t *testing.T) {
	kernel := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Skipf("no CLOCK_BOOTTIME here: %v", err)
		}
		return time.Duration(ts.Nano())
	}
	clock := Default()
	for range 1000 {
		before := kernel()
		got := clock()
		// It may be behind by what its reading of the kernel's took, which is
		// little unless the machine is very busy.
		if after := kernel(); got < before-time.Second || got > after {
			t.Fatalf("got %v between %v and %v", got, before, after)
		}
	}
}

func BenchmarkDefault(b *testing.B) {
	clock := Default()
	for b.Loop() {
		clock()
	}
}
