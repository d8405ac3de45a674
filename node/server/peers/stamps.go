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

	ahead   atomic.Int64  // by Clock: when the last complaint was; 0: never
	skipped atomic.Uint64 // complaints since then
}

// Observe takes the stamp of a peer's frame in. Any client may send one that is
// too far ahead with each frame, so the log has one line a minute.
func (s *Stamps) Observe(peer string, stamp uint64) {
	err := s.HLC.Observe(hlc.Time(stamp))
	if err == nil {
		return
	}
	now, last := int64(s.Clock()), s.ahead.Load()
	if last != 0 && now-last < int64(aheadEvery) || !s.ahead.CompareAndSwap(last, now) {
		s.skipped.Add(1)
		return
	}
	s.Logger.Warn("a peer's clock is ahead", logattr.Peer(peer), logattr.Err(err), slog.Uint64("more", s.skipped.Swap(0)))
}
