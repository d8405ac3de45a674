// Package receipts keeps what the actives said of the last operation that this
// client made on each object: which nodes and sites hold it, at which serial and
// time. It also keeps which copy of an object was read last on eventual terms. It
// asks no node.
package receipts

import (
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxKept bounds the objects whose last receipt is kept; then all are forgotten.
const maxKept = 4096

// Table keeps the last receipt of each object. The zero Table is empty. It is
// safe for use by many goroutines; its lock is held over no call.
type Table struct {
	mu     sync.Mutex // guards below
	by     map[ids.Object]*pb.Receipt
	copies map[ids.Object]Copy
}

// Copy is what an eventual read was answered from, not by the active.
type Copy struct {
	By     ids.Node
	Serial uint64 // of the last operation that it shows
	Epoch  uint64
	Age    time.Duration // since that node had heard the active last
	// Unmerged: it may show writes that the active has not heard of.
	Unmerged bool
	Read     time.Time
}

// NoteCopy keeps what was read of an object last. A Copy without an Age is none: the
// active answered.
func (t *Table) NoteCopy(o ids.Object, c Copy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Age == 0 {
		delete(t.copies, o)
		return
	}
	if t.copies == nil || len(t.copies) >= maxKept {
		t.copies = make(map[ids.Object]Copy, maxKept)
	}
	t.copies[o] = c
}

// Copy returns what was read of an object last; false: what the active said.
func (t *Table) Copy(o ids.Object) (Copy, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.copies[o]
	return c, ok
}

// Note keeps a receipt, which must not be changed any more; nil is none.
func (t *Table) Note(o ids.Object, r *pb.Receipt) {
	if r == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil || len(t.by) >= maxKept {
		t.by = make(map[ids.Object]*pb.Receipt, maxKept)
	}
	t.by[o] = r
}

// Get returns an object's last receipt, or nil. The caller may not change it.
func (t *Table) Get(o ids.Object) *pb.Receipt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[o]
}
