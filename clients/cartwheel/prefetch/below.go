package prefetch

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
)

// Names below a directory that come along with the answer to what it is: so
// many bytes of them are asked for, where the round trip to the active takes
// longer than the client is set up for. What came along lately is not asked for again
// within belowAgain: it was not kept, because others change it.
const (
	belowBytes = 64 << 10
	belowAgain = 10 * time.Second
	maxBrought = 1024
)

// place is a name in a directory.
type place struct {
	dir  ids.Object
	name string
}

// Below remembers for which names those below were asked for. It is safe for use
// by many goroutines; its lock is held over no call but the clock.
type Below struct {
	clock boottime.Func

	mu sync.Mutex // guards by
	by map[place]time.Duration
}

// NewBelow returns a Below that remembers nothing.
func NewBelow(clock boottime.Func) *Below { return &Below{clock: clock} }

// Bytes is how many bytes of names below a name to ask for, 0 where they were
// asked for lately. It notes that they are asked for.
func (b *Below) Bytes(dir ids.Object, name string) uint32 {
	p, now := place{dir, name}, b.clock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if last, ok := b.by[p]; ok && now-last < belowAgain {
		return 0
	}
	if b.by == nil || len(b.by) >= maxBrought {
		b.by = make(map[place]time.Duration, maxBrought)
	}
	b.by[p] = now
	return belowBytes
}

// Clear forgets all of them: what came along was dropped here, and other clients
// did not change it.
func (b *Below) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by = nil
}
