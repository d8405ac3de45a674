package cockroach_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/storetest/pgproxy"
)

// chance is a source of random numbers for many goroutines.
type chance struct {
	mu     sync.Mutex // guards random
	random *rand.Rand
}

// newChance takes its seed from CARTWHEEL_SEED, or the clock.
func newChance(t *testing.T) *chance {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CARTWHEEL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CARTWHEEL_SEED=%d", seed)
	return &chance{random: rand.New(rand.NewPCG(seed, 0))}
}

func (c *chance) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// often lets one request in n fail, each in one of the ways.
func (c *chance) often(n int) pgproxy.Fault {
	if c.below(n) != 0 {
		return pgproxy.None
	}
	return pgproxy.Fault(1 + c.below(int(pgproxy.Faults)-1))
}

// ledger is what the writers know of their batches.
type ledger struct {
	mu      sync.Mutex // guards all below
	applied map[string]ids.Revision
	refused map[string]bool // settled as not applied
}

func (l *ledger) note(name string, rev ids.Revision, applied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if applied {
		l.applied[name] = rev
	} else {
		l.refused[name] = true
	}
}

// write applies one batch and finds out what became of it, whatever it takes.
func (l *ledger) write(ctx context.Context, t *testing.T, s geoconfig.Store, name string, patience time.Duration) {
	b := geoconfig.Batch{Key: name, Audit: []geoconfig.AuditRecord{{Who: "ann", Action: "test.write", Subject: name}}}
	if len(name)%2 == 0 { // the others would not be noticed by a conflict
		b.Sites = []geoconfig.Site{{Name: ids.Site(name)}}
	}
	short, cancel := context.WithTimeout(ctx, patience)
	rev, err := s.Apply(short, b)
	cancel()
	if err == nil {
		l.note(name, rev, true)
		return
	}
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.TimedOut, fault.Overloaded:
	default:
		t.Errorf("%s: %v", name, err)
		return
	}
	for {
		rev, applied, err := s.Settle(ctx, name)
		if err == nil {
			l.note(name, rev, applied)
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s is not settled: %v", name, err)
			return
		}
	}
}

// check compares the ledger with what the database has.
func (l *ledger) check(t *testing.T, s geoconfig.Store) {
	t.Helper()
	rows, err := s.Read(t.Context(), geoconfig.Query{Sites: true, Audit: geoconfig.MaxBatchRows})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]ids.Revision)
	for _, a := range rows.Audit {
		if _, twice := seen[a.Subject]; twice {
			t.Errorf("%s was applied twice", a.Subject)
		}
		seen[a.Subject] = a.Revision
	}
	for name, rev := range l.applied {
		if seen[name] != rev {
			t.Errorf("%s was acknowledged at revision %d, and is recorded at %d", name, rev, seen[name])
		}
	}
	for name := range l.refused {
		if seen[name] != 0 {
			t.Errorf("%s was settled as not applied, and is recorded at %d", name, seen[name])
		}
	}
	if len(seen) != len(l.applied) || rows.Revision != ids.Revision(len(l.applied))+1 {
		t.Errorf("%d batches were applied, %d are recorded, up to revision %d", len(l.applied), len(seen), rows.Revision)
	}
	sites := 0
	for name := range l.applied {
		if len(name)%2 == 0 {
			sites++
		}
	}
	if len(rows.Sites) != sites+2 {
		t.Errorf("%d sites are there, want %d", len(rows.Sites), sites+2)
	}
}

func TestFaults_NeitherLoseNorRepeatAChange(t *testing.T) {
	const stores, writers, each = 3, 6, 12
	random := newChance(t)
	o := scratch(t, shared.URL(t))
	direct := open(t, o)
	apply(t, direct, first())
	proxy, url := pgproxy.Start(t, o.URL, func(r pgproxy.Request) pgproxy.Fault {
		if r.IsCommit() {
			return random.often(2)
		}
		return random.often(40)
	})
	l := &ledger{applied: make(map[string]ids.Revision), refused: make(map[string]bool)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	following, stop := context.WithCancel(ctx)
	var wg, followers sync.WaitGroup
	for i := range stores {
		s := openThrough(ctx, t, cockroach.Options{Options: database.Options{URL: url, Schema: o.Schema, Patience: 2 * time.Second}, Poll: fastPoll})
		followers.Go(func() { followWhole(following, t, s) })
		for j := range writers {
			wg.Go(func() {
				for k := range each {
					patience := 20 * time.Second
					if random.below(4) == 0 {
						patience = time.Duration(1+random.below(20)) * time.Millisecond
					}
					l.write(ctx, t, s, fmt.Sprintf("w-%d-%d-%d", i, j, k), patience)
				}
			})
		}
	}
	wg.Wait()
	stop()
	followers.Wait()
	l.check(t, direct)
	for f := pgproxy.LoseAnswer; f < pgproxy.Faults; f++ {
		if proxy.Count(f) == 0 {
			t.Logf("fault %d did not happen", f)
		}
	}
	t.Logf("%d applied, %d not; requests without a fault: %d", len(l.applied), len(l.refused), proxy.Count(pgproxy.None))
}

// openThrough opens a store behind a proxy that may fail it.
func openThrough(ctx context.Context, t *testing.T, o cockroach.Options) *cockroach.Store {
	t.Helper()
	for {
		s, err := cockroach.Open(ctx, o)
		if err == nil {
			t.Cleanup(func() { s.Close() })
			return s
		}
		if ctx.Err() != nil {
			t.Fatalf("Open: %v", err)
		}
	}
}

// followWhole follows to the end of ctx, and checks that no revision comes after
// a higher one.
func followWhole(ctx context.Context, t *testing.T, s geoconfig.Store) {
	for since := ids.Revision(1); ctx.Err() == nil; {
		rows, err := s.Follow(ctx, since, 3)
		if err != nil {
			continue // the proxy's doing
		}
		for _, site := range rows.Sites {
			if site.Revision <= since || site.Revision > rows.Revision {
				t.Errorf("from %d to %d came revision %d", since, rows.Revision, site.Revision)
			}
		}
		since = rows.Revision
	}
}

// Each fault on each commit once, so that none hides behind another.
func TestFaults_EachOneOfACommitIsSettled(t *testing.T) {
	o := scratch(t, shared.URL(t))
	direct := open(t, o)
	apply(t, direct, first())
	var mu sync.Mutex // guards next
	next := pgproxy.None
	proxy, url := pgproxy.Start(t, o.URL, func(r pgproxy.Request) pgproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !r.IsCommit() {
			return pgproxy.None
		}
		f := next
		next = pgproxy.None
		return f
	})
	proxy.Delay = time.Second // beyond the patience
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := open(t, cockroach.Options{Options: database.Options{URL: url, Schema: o.Schema, Patience: 300 * time.Millisecond}})
	l := &ledger{applied: make(map[string]ids.Revision), refused: make(map[string]bool)}
	for f := pgproxy.None; f < pgproxy.Faults; f++ {
		mu.Lock()
		next = f
		mu.Unlock()
		name := fmt.Sprintf("fault-%d", f)
		l.write(ctx, t, s, name, 10*time.Second)
		if proxy.Count(f) == 0 {
			t.Errorf("fault %d did not happen", f)
		}
		if l.applied[name] != ids.Revision(f)+2 {
			t.Errorf("fault %d: got revision %d", f, l.applied[name])
		}
	}
	l.check(t, direct)
}

// Every commit takes a while, as between regions. Calls that come meanwhile go
// into the next one together.
func TestApply_CallsShareTransactions(t *testing.T) {
	o := scratch(t, shared.URL(t))
	var commits atomic.Int32
	proxy, url := pgproxy.Start(t, o.URL, func(r pgproxy.Request) pgproxy.Fault {
		if !r.IsCommit() {
			return pgproxy.None
		}
		commits.Add(1)
		return pgproxy.Stall
	})
	proxy.Delay = 50 * time.Millisecond
	s := open(t, cockroach.Options{Options: database.Options{URL: url, Schema: o.Schema}})
	apply(t, s, first())
	const calls = 100
	commits.Store(0)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			if _, err := s.Apply(t.Context(), addSite(fmt.Sprint("s", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls in %v and %d commits", calls, time.Since(start), commits.Load())
	if n := commits.Load(); n > calls/10 {
		t.Errorf("%d calls took %d commits", calls, n)
	}
}
