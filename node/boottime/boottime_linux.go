package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

func platform() Func {
	var probe unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &probe) != nil {
		return corrected(sinceStart(), time.Now) // kernels before 2.6.39 and some sandboxes
	}
	start := time.Now()
	both := func() (mono, wall time.Duration) {
		now := time.Now()
		return now.Sub(start), time.Duration(now.UnixNano() - start.UnixNano())
	}
	boot := func() time.Duration {
		var ts unix.Timespec
		// The call fails for unknown clocks and bad addresses only, and the
		// probe has shown that this is neither.
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
		return time.Duration(ts.Nano())
	}
	return sparing(both, boot)
}
