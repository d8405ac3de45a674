package people

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Limits of guessing. They hold for each node by itself.
type Limits struct {
	// Account bounds failures on one name, whether there is such an account or
	// not; default: 5 are free, then waits of 1 s to 1 minute. The longest is
	// short, so that a stranger cannot lock somebody out for long.
	Account Backoff
	// Origin bounds failures from one address, of IPv6 one /64; default: 20 are
	// free, then waits of 1 s to 15 minutes.
	Origin Backoff
	// Entries is how many names, and how many addresses, are remembered, default
	// 10,000. Beyond it the one that failed the longest ago is forgotten.
	Entries int
}

// Backoff is a wait that doubles with each failure.
type Backoff struct {
	// Free is how many failures need no wait.
	Free int
	// First is the wait after the next failure, Longest the longest wait.
	First, Longest time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Account == (Backoff{}) {
		l.Account = Backoff{Free: 5, First: time.Second, Longest: time.Minute}
	}
	if l.Origin == (Backoff{}) {
		l.Origin = Backoff{Free: 20, First: time.Second, Longest: 15 * time.Minute}
	}
	if l.Entries == 0 {
		l.Entries = 10_000
	}
	return l
}

// forgetAfter is the quiet time after which failures do not count any more.
const forgetAfter = time.Hour

// throttle counts failures by key. It is safe for concurrent use.
type throttle struct {
	backoff Backoff
	most    int

	mu      sync.Mutex // guards all below
	entries map[string]*list.Element
	order   *list.List // of *failures, the one that failed last in front
}

type failures struct {
	key   string
	count int
	last  time.Time
	until time.Time // no attempt before
}

func newThrottle(b Backoff, most int) *throttle {
	return &throttle{backoff: b, most: most, entries: make(map[string]*list.Element), order: list.New()}
}

// attempt returns how long the key has to wait before an attempt. If it need not,
// the attempt counts as failed from now on, before the password is checked, so
// that attempts at the same time count too. began says that it is the one after
// which the waiting begins.
func (t *throttle) attempt(key string, now time.Time) (wait time.Duration, began bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.findLocked(key, now)
	if f == nil {
		f = &failures{key: key}
		t.entries[key] = t.order.PushFront(f)
		if t.order.Len() > t.most {
			t.dropLocked(t.order.Back())
		}
	}
	if wait := f.until.Sub(now); wait > 0 {
		return wait, false
	}
	f.count++
	f.last = now
	t.order.MoveToFront(t.entries[key])
	if over := f.count - t.backoff.Free; over >= 0 {
		f.until = now.Add(t.backoff.after(over))
	}
	return 0, f.count == t.backoff.Free
}

// after returns the wait after so many failures beyond the free ones.
func (b Backoff) after(over int) time.Duration {
	wait := b.First
	for ; over > 0 && wait < b.Longest; over-- {
		wait *= 2
	}
	return min(wait, b.Longest)
}

// refund takes back one attempt that did not fail.
func (t *throttle) refund(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.entries[key]; ok {
		f := e.Value.(*failures)
		if f.count--; f.count <= 0 {
			t.dropLocked(e)
		} else if f.count < t.backoff.Free {
			f.until = time.Time{}
		}
	}
}

// clear forgets a key's failures.
func (t *throttle) clear(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.entries[key]; ok {
		t.dropLocked(e)
	}
}

// findLocked returns what counts of a key's failures. t.mu is held.
func (t *throttle) findLocked(key string, now time.Time) *failures {
	e, ok := t.entries[key]
	if !ok {
		return nil
	}
	f := e.Value.(*failures)
	if now.Sub(f.last) > forgetAfter {
		t.dropLocked(e)
		return nil
	}
	return f
}

// dropLocked forgets an entry. t.mu is held.
func (t *throttle) dropLocked(e *list.Element) {
	delete(t.entries, e.Value.(*failures).key)
	t.order.Remove(e)
}

// maxOriginBytes bounds an address that is none.
const maxOriginBytes = 64

// originKey joins the addresses that one customer of a network has.
func originKey(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return cut(address, maxOriginBytes)
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
