package budget

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

const (
	// maxWaiting bounds the calls that wait on one line: a further one is
	// answered Overloaded.
	maxWaiting = 8192
	// leastBurst is what a line lets pass at once at least, in bytes.
	leastBurst = 64 << 10
	// burstTime is how long a line saves up while nothing is sent.
	burstTime = 50 * time.Millisecond
)

// Counts are what passed a line in one class.
type Counts struct {
	Bytes uint64
	// Waited is how long calls waited, added up.
	Waited time.Duration
}

// line is one direction between two sites, as far as this node sends there. What
// it lets pass stays within its rate: a token bucket, which each call overdraws
// by what it sends, and the next one waits until that is made up for. Of the calls
// that wait, one of the most urgent class goes first, except that each lower class
// has a bucket of its own with its share, and goes before all others while there
// is something in it. It is safe for concurrent use.
type line struct {
	clock func() time.Duration

	mu      sync.Mutex
	bucket  *rate.Limiter // nil: no rate holds
	shares  [classes]*rate.Limiter
	queues  [classes]fair
	waiting int
	timer   *time.Timer // runs turn; nil: nothing waits for tokens
	closed  bool
	sent    byClass // since demand was asked for
	counts  [classes]Counts
}

func newLine(clock func() time.Duration) *line { return &line{clock: clock} }

// now is the time of the buckets.
func (l *line) now() time.Time { return time.Unix(0, 0).Add(l.clock()) }

// await returns once a call may pass that enter has wait. Errors: that of ctx, and
// Closed.
func (l *line) await(ctx context.Context, w *waiter, c Class) (err error) {
	began := l.clock()
	select {
	case err = <-w.ready:
	case <-ctx.Done():
		if !l.leave(w, c) {
			return <-w.ready // it was just let pass
		}
		err = fault.Wrap(fault.TimedOut, "budget.await", w.peer, context.Cause(ctx))
	}
	l.mu.Lock()
	l.counts[c].Waited += l.clock() - began
	l.mu.Unlock()
	return err
}

// enter lets so many bytes leave for a peer at once, where they may, or returns a
// waiter for await. Errors: Overloaded (too many calls wait) and Closed.
func (l *line) enter(peer string, c Class, bytes int) (*waiter, error) {
	const op fault.Op = "budget.enter"
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, fault.E(fault.Closed, op, peer, "")
	case l.bucket == nil || l.waiting == 0 && l.hasTokens(l.bucket):
		l.spend(c, bytes)
		return nil, nil
	case l.waiting >= maxWaiting:
		return nil, fault.E(fault.Overloaded, op, peer, "too much waits for the budget between the sites")
	}
	w := &waiter{peer: peer, bytes: bytes, ready: make(chan error, 1)}
	l.queues[c].push(w)
	l.waiting++
	l.turnLocked()
	return w, nil
}

// leave takes a call back that waits. False: it was let pass.
func (l *line) leave(w *waiter, c Class) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.queues[c].remove(w) {
		return false
	}
	l.waiting--
	return true
}

// spend counts bytes that leave.
func (l *line) spend(c Class, bytes int) {
	l.sent[c] += int64(bytes)
	l.counts[c].Bytes += uint64(bytes)
	l.draw(l.bucket, onTheLine(int64(bytes)))
}

// onTheLine is about how many bytes content takes on a line, with the headers of
// its packets and records.
func onTheLine(bytes int64) int64 { return bytes + bytes/24 }

// draw takes tokens out of a bucket, which may then hold fewer than none. Nil has
// no bounds.
func (l *line) draw(b *rate.Limiter, bytes int64) {
	if b == nil {
		return
	}
	now, most := l.now(), int64(b.Burst())
	for bytes > 0 { // a reservation may not be for more than the burst
		n := min(bytes, most)
		b.ReserveN(now, int(n))
		bytes -= n
	}
}

func (l *line) hasTokens(b *rate.Limiter) bool { return b.TokensAt(l.now()) >= 1 }

// charge counts bytes that left without having waited, as far as half of the
// rate: content still gets the other half.
func (l *line) charge(bytes int64, over time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bucket != nil {
		l.draw(l.bucket, min(bytes, int64(float64(l.bucket.Limit())*over.Seconds()/2)))
	}
}

// turn lets calls pass for which there are tokens now.
func (l *line) turn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	l.turnLocked()
}

// turnLocked lets calls pass for which there are tokens now. The mutex is held.
func (l *line) turnLocked() {
	for l.waiting > 0 && (l.bucket == nil || l.hasTokens(l.bucket)) {
		c, byShare := l.next()
		w := l.queues[c].pop()
		l.waiting--
		l.spend(c, w.bytes)
		if byShare {
			l.draw(l.shares[c], onTheLine(int64(w.bytes)))
		}
		w.ready <- nil
	}
	if l.waiting > 0 && l.timer == nil {
		lacks := max(1-l.bucket.TokensAt(l.now()), 0)
		l.timer = time.AfterFunc(time.Duration(lacks/float64(l.bucket.Limit())*float64(time.Second))+time.Microsecond, l.turn)
	}
}

// next chooses the class that goes next, of those in which a call waits. ByShare:
// it goes because it has not had its share.
func (l *line) next() (c Class, byShare bool) {
	for c := Replication; c < classes; c++ {
		if !l.queues[c].isEmpty() && l.shares[c] != nil && l.hasTokens(l.shares[c]) {
			return c, true
		}
	}
	for c < classes-1 && l.queues[c].isEmpty() {
		c++
	}
	return c, false
}

// set gives the line a rate in bytes per second; 0: none holds.
func (l *line) set(perSecond float64, shares geoconfig.Shares) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if perSecond <= 0 {
		l.bucket, l.shares = nil, [classes]*rate.Limiter{}
	} else {
		l.bucket = l.limit(l.bucket, perSecond)
		for c, percent := range map[Class]int{Replication: shares.Replication, Repair: shares.Repair, Rebalancing: shares.Rebalancing} {
			l.shares[c] = l.limit(l.shares[c], perSecond*float64(percent)/100)
		}
	}
	if l.timer != nil { // the wait is another one now
		l.timer.Stop()
		l.timer = nil
	}
	l.turnLocked()
}

// limit changes a bucket's rate, and makes one where there is none. What it was
// overdrawn by stays.
func (l *line) limit(b *rate.Limiter, perSecond float64) *rate.Limiter {
	burst := max(int(perSecond*burstTime.Seconds()), leastBurst)
	if b == nil {
		return rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	if now := l.now(); b.Limit() != rate.Limit(perSecond) {
		b.SetLimitAt(now, rate.Limit(perSecond))
		b.SetBurstAt(now, burst)
	}
	return b
}

// demand returns what calls wanted to send since it was last asked, in bytes: what
// was sent, and what waits. A class in which calls wait would have sent more: callers
// ask for the next piece when they have one. So it counts as one that sends twice
// as much.
func (l *line) demand() (out byClass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.queues {
		out[c] = onTheLine(l.sent[c] + l.queues[c].bytes)
		if !l.queues[c].isEmpty() {
			out[c] += onTheLine(l.sent[c])
		}
	}
	l.sent = byClass{}
	return out
}

// rate is what holds now, in bytes per second; 0: nothing.
func (l *line) rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bucket == nil {
		return 0
	}
	return float64(l.bucket.Limit())
}

// passed returns what passed since the start.
func (l *line) passed() [classes]Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// close fails the calls that wait, and those that come.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	for c := range l.queues {
		for w := l.queues[c].pop(); w != nil; w = l.queues[c].pop() {
			w.ready <- fault.E(fault.Closed, "budget.close", w.peer, "")
		}
	}
	l.waiting = 0
}
