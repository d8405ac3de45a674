package cockroach

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const (
	// DefaultPoll is how often followers make the store look for changes of
	// other processes.
	DefaultPoll = 250 * time.Millisecond
	// minPoll bounds the load that a setting can bring about.
	minPoll = 5 * time.Millisecond
	// readPatience bounds the repetitions of a reading that did not come through.
	readPatience = 5 * time.Second
)

// watch knows the store's revision, and wakes those who wait for a higher one.
type watch struct {
	db     *database.Database
	poll   time.Duration
	wanted chan struct{} // tells the poller of the first waiter

	mu      sync.Mutex // guards all below; never held across I/O
	rev     ids.Revision
	changed chan struct{} // closed and replaced when rev changes, or a poll failed
	failed  error         // of the last poll
	polls   int           // that ended
	waiters int
}

func newWatch(d *database.Database, poll time.Duration) *watch {
	return &watch{db: d, poll: poll, wanted: make(chan struct{}, 1), changed: make(chan struct{})}
}

// await waits until the store is past a revision. A poll that failed after the
// wait began ends it.
func (w *watch) await(ctx context.Context, op fault.Op, since ids.Revision) error {
	begin := w.join()
	defer w.leave()
	for {
		w.mu.Lock()
		rev, changed, polls, failed := w.rev, w.changed, w.polls, w.failed
		w.mu.Unlock()
		if err := w.db.Enter(ctx, op); err != nil {
			return err
		}
		if rev > since {
			return nil
		}
		if polls > begin && failed != nil {
			return fault.Wrap(fault.Unreachable, op, w.db.Where(), failed)
		}
		select {
		case <-changed:
		case <-w.db.Life().Done():
		case <-ctx.Done():
		}
	}
}

// join counts a follower, and wakes the poller for the first one. It returns how
// many polls have ended.
func (w *watch) join() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters++; w.waiters == 1 {
		select {
		case w.wanted <- struct{}{}:
		default:
		}
	}
	return w.polls
}

func (w *watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
}

// advance tells followers of a new revision.
func (w *watch) advance(rev ids.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rev > w.rev {
		w.rev = rev
		w.wakeLocked()
	}
}

// wakeLocked wakes who waits, with mu held.
func (w *watch) wakeLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watch) isIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters == 0
}

// keepPolling looks for the changes of other processes while there are
// followers, until the store is closed.
func (w *watch) keepPolling() {
	for {
		if w.isIdle() {
			select {
			case <-w.wanted:
				continue
			case <-w.db.Life().Done():
				return
			}
		}
		w.look()
		// Shortened at random, so that processes do not poll in step.
		timer := time.NewTimer(w.poll - time.Duration(rand.Int64N(int64(w.poll)/4+1)))
		select {
		case <-timer.C:
		case <-w.db.Life().Done():
			timer.Stop()
			return
		}
	}
}

// look polls once.
func (w *watch) look() {
	var rev ids.Revision
	err := w.db.Retry(w.db.Life(), "cockroach.Follow", readPatience, func(ctx context.Context) error {
		return w.db.Pool.QueryRow(ctx, "SELECT revision FROM state WHERE one = 1").Scan(&rev)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polls++
	w.failed = err
	if err != nil || rev > w.rev {
		w.rev = max(w.rev, rev)
		w.wakeLocked()
	}
}
