// Package owed keeps the files whose owner or mode was set to what it was, while
// this client writes them. Such a change moves nothing but the file's ctime, and the
// next commit moves that too. So no node hears of the change by itself, unless no
// commit comes until the file is closed. The Table keeps what is owed, and the Keeper
// decides what is and sends it. Both are safe for use by many goroutines; no lock is
// held over a call.
package owed

import (
	"sync"

	"cartwheel.dev/geo-config/ids"
)

// MaxFiles bounds the files of a Table. A change of a further file goes to its active.
const MaxFiles = 1024

// Debt is a ctime that is still to move at the file's active.
type Debt struct {
	number uint64 // of the Table; newer ones have higher numbers
	At     int64  // when, in Unix nanoseconds
}

// Table keeps at most one Debt for each file, the newest.
type Table struct {
	mu       sync.Mutex // guards below
	byObject map[ids.Object]Debt
	last     uint64
}

// New returns an empty Table.
func New() *Table { return &Table{byObject: map[ids.Object]Debt{}} }

// Add notes that a file's ctime is to move to a time in Unix nanoseconds. It returns
// false where the Table is full.
func (t *Table) Add(o ids.Object, at int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.byObject[o]
	if !ok && len(t.byObject) >= MaxFiles {
		return false
	}
	t.last++
	t.byObject[o] = Debt{number: t.last, At: max(at, old.At)}
	return true
}

// Of returns a file's Debt; false where it has none.
func (t *Table) Of(o ids.Object) (Debt, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.byObject[o]
	return d, ok
}

// Paid drops a file's Debt if it is still the one that Of returned: an operation that
// was sent after that moved the ctime.
func (t *Table) Paid(o ids.Object, d Debt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byObject[o].number == d.number {
		delete(t.byObject, o)
	}
}

// Drop drops what is owed to a file that is gone, or closed.
func (t *Table) Drop(o ids.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byObject, o)
}
