// Package hlc is the hybrid logical clock: timestamps that follow wall time
// closely and still order every event after whatever its node had seen before.
// It keeps no leases (those go by package boottime) and compares no clocks of
// two machines except to refuse one that is far ahead. A Clock is safe for
// concurrent use and takes no locks.
package hlc

import (
	"fmt"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Time is a hybrid timestamp: nanoseconds since 1970 whose low 16 bits count
// the events of one tick (65.536 us) instead. It is stored and sent as it is;
// comparing two as numbers compares the times. 0 is no time.
type Time uint64

const (
	logicalBits = 16
	logicalMask = 1<<logicalBits - 1
)

// MaxAhead is how far a timestamp may be ahead of the clock that meets it.
const MaxAhead = 500 * time.Millisecond

// FromWall returns the lowest timestamp of a moment's tick. Moments before
// 1970 give 0.
func FromWall(t time.Time) Time {
	ns := t.UnixNano()
	if ns < 0 {
		return 0
	}
	return Time(ns) &^ logicalMask
}

// Wall returns the beginning of the timestamp's tick.
func (t Time) Wall() time.Time { return time.Unix(0, int64(t&^logicalMask)) }

// Logical returns the count within the tick.
func (t Time) Logical() uint16 { return uint16(t & logicalMask) }

func (t Time) String() string {
	return fmt.Sprintf("%s+%d", t.Wall().UTC().Format("2006-01-02T15:04:05.000000Z"), t.Logical())
}

// Clock gives timestamps, each above all that it gave or observed before.
type Clock struct {
	physical func() time.Time
	last     atomic.Uint64 // highest Time given or observed
}

// New returns a clock over a physical source, which may step in any direction
// and is called from any goroutine.
func New(physical func() time.Time) *Clock { return &Clock{physical: physical} }

// Now returns a timestamp above all earlier ones, at or above physical time.
func (c *Clock) Now() Time {
	wall := uint64(FromWall(c.physical()))
	for {
		last := c.last.Load()
		next := max(wall, last+1)
		if c.last.CompareAndSwap(last, next) {
			return Time(next)
		}
	}
}

// Last returns the highest timestamp given or observed so far, 0 at first.
func (c *Clock) Last() Time { return Time(c.last.Load()) }

// Observe takes note of a timestamp from elsewhere, so that whatever Now gives
// afterwards is above it. One more than MaxAhead above the physical clock is
// refused with kind ClockSkew and leaves the clock as it was.
func (c *Clock) Observe(t Time) error {
	if uint64(t) <= c.last.Load() {
		return nil
	}
	if ahead := t.Wall().Sub(c.physical()); ahead > MaxAhead {
		return fault.Errorf(fault.ClockSkew, "hlc.Observe", t.String(),
			"the timestamp is %v ahead of this node's clock, more than the %v allowed: check both machines' clocks", ahead.Round(time.Millisecond), MaxAhead)
	}
	c.Raise(t)
	return nil
}

// Raise is Observe without the limit, for what this node itself had stored:
// after a restart with a clock set back, its history stays in order.
func (c *Clock) Raise(t Time) {
	for {
		last := c.last.Load()
		if uint64(t) <= last || c.last.CompareAndSwap(last, uint64(t)) {
			return
		}
	}
}
