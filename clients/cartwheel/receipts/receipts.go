// Package receipts keeps what the actives said of the last operation that this
// client made on each object: which nodes and sites hold it, at which serial and
// time. It asks no node.
package receipts

import (
	"sync"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxKept bounds the objects whose last receipt is kept; then all are forgotten.
const maxKept = 4096

// Table keeps the last receipt of each object. The zero Table is empty. It is
// safe for use by many goroutines; its lock is held over no call.
type Table struct {
	mu sync.Mutex // guards by
	by map[ids.Object]*pb.Receipt
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
