package api

import (
	"container/heap"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
)

// heapOf keeps the first rows of a query's order, the last of them on top.
type heapOf struct {
	q     *query
	items []ranked
}

// ranked is a row with its place in the order.
type ranked struct {
	key int64
	row *geoconfig.SliceRow
}

// offer takes a row in where it is among the first, and reports whether a row, this
// one or another, was left out.
func (h *heapOf) offer(key int64, row *geoconfig.SliceRow) (left bool) {
	if len(h.items) < h.q.limit {
		heap.Push(h, ranked{key, row})
		return false
	}
	if top := h.items[0]; before(h.q, key, row.ID, top.key, top.row.ID) {
		h.items[0] = ranked{key, row}
		heap.Fix(h, 0)
	}
	return true
}

// sorted returns the rows in the query's order.
func (h *heapOf) sorted() []geoconfig.SliceRow {
	slices.SortFunc(h.items, func(a, b ranked) int {
		if before(h.q, a.key, a.row.ID, b.key, b.row.ID) {
			return -1
		}
		return 1
	})
	out := make([]geoconfig.SliceRow, len(h.items))
	for i := range h.items {
		out[i] = *h.items[i].row
	}
	return out
}

// Len implements heap.Interface.
func (h *heapOf) Len() int { return len(h.items) }

// Less implements heap.Interface: the last of the order is on top.
func (h *heapOf) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	return before(h.q, b.key, b.row.ID, a.key, a.row.ID)
}

// Swap implements heap.Interface.
func (h *heapOf) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push implements heap.Interface.
func (h *heapOf) Push(x any) { h.items = append(h.items, x.(ranked)) }

// Pop implements heap.Interface.
func (h *heapOf) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}
