package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// On macOS CLOCK_MONOTONIC goes on during sleep, unlike the clock that Go's
// own monotonic readings use.
func platform() Func {
	var probe unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &probe) != nil {
		return corrected(sinceStart(), time.Now)
	}
	return func() time.Duration {
		var ts unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail: probed above
		return time.Duration(ts.Nano())
	}
}
