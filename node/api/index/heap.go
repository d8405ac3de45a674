package index

import (
	"cmp"
	"slices"

	"cartwheel.dev/geo-config/ids"
)

// heapOf keeps the first slices of a query's order, the last of them on top.
type heapOf struct {
	q     *Query
	items []ranked
}

// ranked is a slice with its key in the order and its place in the index.
type ranked struct {
	key int64
	id  ids.Slice
	at  int
}

// offer takes a slice in where it is among the first, and reports whether one, this
// or another, was left out.
func (h *heapOf) offer(r ranked) (left bool) {
	if len(h.items) < h.q.Limit {
		h.items = append(h.items, r)
		h.up(len(h.items) - 1)
		return false
	}
	if h.before(r, h.items[0]) {
		h.items[0] = r
		h.down()
	}
	return true
}

func (h *heapOf) before(a, b ranked) bool { return before(h.q, a.key, a.id, b.key, b.id) }

// up moves an item up to where its parent comes later in the order.
func (h *heapOf) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.items[parent], h.items[i]) {
			return
		}
		h.items[parent], h.items[i] = h.items[i], h.items[parent]
		i = parent
	}
}

// down moves the top down to where its children come earlier in the order.
func (h *heapOf) down() {
	for i := 0; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.before(h.items[last], h.items[child]) {
				last = child
			}
		}
		if last == i {
			return
		}
		h.items[i], h.items[last] = h.items[last], h.items[i]
		i = last
	}
}

// sorted returns the slices in the query's order.
func (h *heapOf) sorted() []ranked {
	slices.SortFunc(h.items, func(a, b ranked) int {
		if h.before(a, b) {
			return -1
		}
		return 1
	})
	return h.items
}

// before reports whether one slice comes before another one in a query's order.
func before(q *Query, ak int64, a ids.Slice, bk int64, b ids.Slice) bool {
	c := cmp.Or(cmp.Compare(ak, bk), cmp.Compare(a, b))
	if q.Descending {
		return c > 0
	}
	return c < 0
}
