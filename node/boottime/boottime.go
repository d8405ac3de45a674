// Package boottime reads the clock that leases are measured by: it never runs
// backwards, nobody sets it, and it goes on while the machine is suspended,
// so that a laptop which wakes up knows that its leases have ended. Its values
// mean nothing on another machine or after a reboot; wall time is package
// hlc's matter. A virtual machine whose host pauses it does not see the pause:
// the host stops this clock as well. Every Func is safe for concurrent use.
package boottime

import "time"

// Func returns the time since some fixed moment of this boot. Code that
// measures leases takes one, so that a test can inject its own, with drift,
// pauses and jumps.
type Func func() time.Duration

// Default returns this machine's best clock: CLOCK_BOOTTIME on Linux, the
// continuous clock on macOS, the interrupt time on Windows (which counts in
// steps of up to 16 ms), elsewhere the monotonic clock corrected by the wall
// clock's jumps.
func Default() Func { return platform() }
