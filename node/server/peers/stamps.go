package peers

import (
	"log/slog"
	"sync/atomic"
	"time"

	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
)

// aheadEvery is the least time between two complaints of peers' clocks.
const aheadEvery = time.Minute

// Stamps takes the times of peers' frames into the node's clock.
type Stamps struct {
	HLC    *hlc.Clock
	Clock  func() time.Duration
	Logger *slog.Logger

	vouched atomic.Uint64 // the latest stamp that was not ahead
	ahead   atomic.Int64  // by Clock: when the last complaint was; 0: never
	skipped atomic.Uint64 // complaints since then
}

// Vouched returns the latest time that another clock than this node's has reached, 0 if
// none is known.
func (s *Stamps) Vouched() hlc.Time { return hlc.Time(s.vouched.Load()) }

// Observe takes the stamp of a peer's frame in. Any client may send one that is
// too far ahead with each frame, so the log has one line a minute.
func (s *Stamps) Observe(peer string, stamp uint64) {
	err := s.HLC.Observe(hlc.Time(stamp))
	if err == nil {
		for last := s.vouched.Load(); stamp > last && !s.vouched.CompareAndSwap(last, stamp); last = s.vouched.Load() {
		}
		return
	}
	now, last := int64(s.Clock()), s.ahead.Load()
	if last != 0 && now-last < int64(aheadEvery) || !s.ahead.CompareAndSwap(last, now) {
		s.skipped.Add(1)
		return
	}
	s.Logger.Warn("a peer's clock is ahead", logattr.Peer(peer), logattr.Err(err), slog.Uint64("more", s.skipped.Swap(0)))
}
