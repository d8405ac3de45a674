// Package auditlog searches the audit log of the configuration store, the newest
// records first. One search reads a bounded part of the log, and says where the next
// one has to go on. The log keeps the newest records that it read, to have something
// to search while the store is away. It writes nothing. A Log is safe for concurrent
// use.
package auditlog

import (
	"context"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

const (
	// step is how many records a search reads from the store at once.
	step = 500
	// most is how many records one search looks at.
	most = 10_000
	// patience bounds how long a search waits for the newest records where it knows
	// earlier ones.
	patience = 500 * time.Millisecond
)

// Store is the store whose log it is.
type Store interface {
	Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
}

// Log is the audit log of a store.
type Log struct {
	store Store
	wall  func() time.Time

	mu      sync.Mutex              // guards the rest
	records []geoconfig.AuditRecord // the newest ones at a time
	at      time.Time
}

// New returns the log of a store. wall is the clock that says how old records are.
func New(store Store, wall func() time.Time) *Log { return &Log{store: store, wall: wall} }

// Found is what one search found.
type Found struct {
	Records []geoconfig.AuditRecord
	// Last is the oldest record that was looked at; its Number is 0 if there was none.
	Last geoconfig.AuditRecord
	// Next is the number below which records were not looked at; 0: all were.
	Next uint64
	// KnownAt is when the records were read that the search had in place of a store
	// that is away; zero: it read the store.
	KnownAt time.Time
}

// Search reads records until it has as many matches as limit says, or has looked at
// as many records as one search may. If the store fails after the first step, Search
// returns what it found before; the next search then fails. Errors: Unreachable.
func (l *Log) Search(ctx context.Context, q Query, limit int) (Found, error) {
	size := limit
	if q.isNarrowed() {
		size = step
	}
	var out Found
	before := q.Before
	for looked := 0; looked < most; looked += size {
		page, err := l.read(ctx, size, before, &out)
		if err != nil && out.Last.Number == 0 {
			return out, err
		}
		if err != nil {
			break
		}
		if out.add(q, page, limit) {
			return out, nil
		}
		before = out.Last.Number
		if len(page) == 0 || before <= 1 {
			return out, nil
		}
		if len(out.Records) == limit || !out.KnownAt.IsZero() {
			break
		}
		if q.isTooNew(&out.Last) {
			before = l.skip(ctx, q, before)
		}
	}
	if before > 1 {
		out.Next = before
	}
	return out, nil
}

// add takes the matches of a page, up to the limit. True: no older record can match.
func (f *Found) add(q Query, page []geoconfig.AuditRecord, limit int) bool {
	for i := range page {
		if len(f.Records) == limit {
			return false
		}
		f.Last = page[i]
		if q.isTooOld(&f.Last) {
			return true
		}
		if q.matches(&f.Last) {
			f.Records = append(f.Records, f.Last)
		}
	}
	return false
}

// skip looks for a lower number than before, below which all matches are, by halving.
// Where the store fails meanwhile, it returns the lowest one it knows.
func (l *Log) skip(ctx context.Context, q Query, before uint64) uint64 {
	low := uint64(1)
	for before > low+step {
		middle := low + (before-low)/2
		rows, err := l.store.Read(ctx, geoconfig.Query{Audit: 1, AuditBefore: middle})
		if err != nil || len(rows.Audit) == 0 {
			break
		}
		if q.isTooNew(&rows.Audit[0]) {
			before = rows.Audit[0].Number
		} else {
			low = middle
		}
	}
	return before
}

// read reads some records below a number, or the newest ones where it is 0.
func (l *Log) read(ctx context.Context, size int, before uint64, out *Found) ([]geoconfig.AuditRecord, error) {
	l.mu.Lock()
	isKnown := before == 0 && !l.at.IsZero()
	l.mu.Unlock()
	if isKnown {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	rows, err := l.store.Read(ctx, geoconfig.Query{Audit: size, AuditBefore: before})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		if before == 0 {
			l.records, l.at = rows.Audit, l.wall()
		}
		return rows.Audit, nil
	}
	if before != 0 || l.at.IsZero() {
		return nil, &fault.Error{Kind: fault.Unreachable, Op: "auditlog.Search", Subject: "database", Public: "the audit log cannot be read now", Cause: err}
	}
	out.KnownAt = l.at
	return l.records[:min(size, len(l.records))], nil
}
