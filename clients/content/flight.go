package content

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

const (
	// firstBatches may be on their way when nothing is known of the way, and
	// mostBatches at any time.
	firstBatches = 3
	mostBatches  = 16
	// sluggish is how long a batch takes at the most where more should be on
	// their way at once: all of them share the way, and each has its limit of
	// time, which must not be used up by waiting for the others.
	sluggish = 5 * time.Second
	// fewBatches stay on their way where a batch takes up to a few times as long: the
	// way would lie idle between the end of one batch and the start of the next.
	fewBatches = 2
	verySlow   = 4 * sluggish
)

// flight bounds the batches of chunks that are on their way at once, over all
// files: few on a way that is slow, many on one that is long. It may be used
// from many goroutines.
type flight struct {
	now func() time.Time

	mu      sync.Mutex // guards below
	room    int        // batches that may be under way
	under   int        // that are
	waiting []chan struct{}
}

func newFlight(now func() time.Time) *flight { return &flight{now: now, room: firstBatches} }

// run waits for a place and runs one batch there. It fails without running it
// only when ctx ends.
func (f *flight) run(ctx context.Context, batch func() error) error {
	const op fault.Op = "content.run"
	f.mu.Lock()
	if f.under < f.room {
		f.under++
		f.mu.Unlock()
	} else {
		turn := make(chan struct{})
		f.waiting = append(f.waiting, turn)
		f.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			f.giveUp(turn)
			return fault.Wrap(fault.Canceled, op, "", context.Cause(ctx))
		}
	}
	began := f.now()
	err := batch()
	f.learn(f.now().Sub(began), err)
	return err
}

// learn changes the room by what became of a batch, and lets others go. Where
// one failed, those that wait fail together rather than one after the other.
func (f *flight) learn(took time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.room = mostBatches
	case took > verySlow:
		f.room = max(f.room/2, 1)
	case took > sluggish:
		f.room = max(f.room/2, min(f.room, fewBatches))
	default:
		f.room = min(f.room+1, mostBatches)
	}
	f.under--
	f.admit()
}

func (f *flight) admit() {
	for len(f.waiting) > 0 && f.under < f.room {
		close(f.waiting[0])
		f.waiting = f.waiting[1:]
		f.under++
	}
}

// giveUp takes a waiting batch back, or gives back the place that it got
// meanwhile.
func (f *flight) giveUp(turn chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, w := range f.waiting {
		if w == turn {
			f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
			return
		}
	}
	f.under--
	f.admit()
}

// dedup decides whether to ask before sending: always at the start of a file,
// then as long as the cluster has some of it, then now and again. It belongs
// to the file's committing goroutine.
type dedup struct {
	asked bool
	sent  int // batches
	hit   atomic.Bool
}

// probeEvery is every how many batches the question is asked again.
const probeEvery = 16

func (d *dedup) ask() bool {
	d.sent++
	return !d.asked || d.hit.Load() || d.sent%probeEvery == 0
}
