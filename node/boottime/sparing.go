package boottime

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leadChange is how much the wall clock's lead over the monotonic one must
	// differ for the slow clock to be asked again.
	leadChange = time.Millisecond
	// A reading of the slow clock counts as good if it took no longer than
	// goodReading; of readTries the quickest is taken.
	goodReading = 20 * time.Microsecond
	readTries   = 5
)

// ahead is how far the slow clock is ahead of the monotonic one, and how far
// the wall clock was when that was found out.
type ahead struct{ boot, wall time.Duration }

// sparing builds the clock boot, which costs a system call, from two that cost
// none: a monotonic clock that stops during a suspension, and the wall clock,
// read with it. Waking up, the kernel adds the time slept to the wall clock and
// to boot in one step, so that as long as the wall clock's lead is the same,
// boot's lead is too. Where it is not, boot is asked: so it is after somebody
// set the wall clock, too. Should both happen between two readings and cancel
// each other out to leadChange, the suspension is missed.
func sparing(both func() (mono, wall time.Duration), boot Func) Func {
	var known atomic.Pointer[ahead]
	var mu sync.Mutex // held by who asks boot
	ask := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := measure(both, boot)
		if was := known.Load(); was != nil {
			now.boot = max(now.boot, was.boot) // it only grows, and never runs backwards
		}
		known.Store(&now)
		mono, _ := both()
		return mono + now.boot
	}
	ask()
	return func() time.Duration {
		mono, wall := both()
		a := known.Load()
		if lead := wall - mono - a.wall; lead > leadChange || lead < -leadChange {
			return ask()
		}
		return mono + a.boot
	}
}

// measure returns the leads of boot and of the wall clock. Boot's is never too
// large, and too small by no more than the reading took.
func measure(both func() (mono, wall time.Duration), boot Func) ahead {
	var best ahead
	least := time.Duration(-1)
	for range readTries {
		before, _ := both()
		b := boot()
		after, wall := both()
		if took := after - before; least < 0 || took < least {
			best, least = ahead{boot: b - after, wall: wall - after}, took
		}
		if least <= goodReading {
			break
		}
	}
	return best
}
