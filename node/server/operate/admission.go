package operate

import (
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// operationBytes is what an operation costs in memory beside its content.
const operationBytes = 4 << 10

// admission bounds the operations that the loop has taken in and not answered,
// over all slices and clients, by number and by bytes. A refusal is early and
// changes nothing: the client asks again. As long as less than half is in use
// everybody is admitted; beyond it nobody gets more than an equal part, of those
// clients and those slices that have any under way.
type admission struct {
	count int
	bytes int

	mu      sync.Mutex // guards below
	all     load
	clients map[uint64]*load
	slices  map[ids.Slice]*load
}

// load is what is under way.
type load struct{ count, bytes int }

func newAdmission(count, bytes int) *admission {
	return &admission{count: count, bytes: bytes, clients: map[uint64]*load{}, slices: map[ids.Slice]*load{}}
}

// partBytes is what one operation of a batch costs beside its content and values.
const partBytes = 1 << 10

func (o *Operation) bytes() int {
	n := operationBytes + len(o.Body)
	for _, p := range o.Op.GetBatch().GetOperations() {
		n += partBytes + len(p.GetSetXattr().GetValue()) + len(p.GetCreate().GetTarget())
	}
	return n
}

// take admits an operation, or says why not.
func (a *admission) take(op *Operation) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, s := a.clients[op.Client], a.slices[op.Slice]
	n := op.bytes()
	if a.all.count > 0 && a.over(a.all, 1, 1, n) ||
		a.over(a.all, 2, 1, n) && (c != nil && a.over(*c, 2, len(a.clients), n) || s != nil && a.over(*s, 1, len(a.slices)+1, n)) {
		return fault.E(fault.Overloaded, "operate.Operate", "", "too many operations are under way: try again")
	}
	if c == nil {
		c = &load{}
		a.clients[op.Client] = c
	}
	if s == nil {
		s = &load{}
		a.slices[op.Slice] = s
	}
	for _, l := range []*load{&a.all, c, s} {
		l.count++
		l.bytes += n
	}
	return nil
}

// over reports whether a load with one more operation of n bytes is beyond its
// part of the limit: one of so many equal parts of a fraction of it.
func (a *admission) over(l load, fraction, parts, n int) bool {
	return l.count+1 > a.count/fraction/parts || l.bytes+n > a.bytes/fraction/parts
}

// give takes an operation that ended out.
func (a *admission) give(op *Operation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := op.bytes()
	c, s := a.clients[op.Client], a.slices[op.Slice]
	for _, l := range []*load{&a.all, c, s} {
		l.count--
		l.bytes -= n
	}
	if c.count == 0 {
		delete(a.clients, op.Client)
	}
	if s.count == 0 {
		delete(a.slices, op.Slice)
	}
}
