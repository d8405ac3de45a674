package api

import (
	"cmp"
	"context"
	"slices"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/cluster"
)

// index keeps the slices' rows in the order of their IDs, so that a page is found
// without copying the table. It follows the node's copy of the configuration from
// a goroutine of its own, and is safe for concurrent use.
type index struct {
	directory Directory

	mu      sync.RWMutex         // guards the rest
	rows    []geoconfig.SliceRow // by ID; a row's members are never changed
	entries []entry              // of the rows, in the same order
	sites   map[ids.Node]ids.Site
	// numbers are those of the nodes that a row ever named: a node keeps its number.
	numbers  map[ids.Node]int32
	revision ids.Revision
}

func newIndex(d Directory) *index {
	return &index{directory: d, sites: map[ids.Node]ids.Site{}, numbers: map[ids.Node]int32{}}
}

// apply takes in the rows that changed.
func (x *index) apply(keys []geoconfig.RowKey, revision ids.Revision) {
	var rows []geoconfig.SliceRow
	nodes := false
	for _, k := range keys {
		nodes = nodes || k.Table == geoconfig.NodesTable
		if id, ok := cluster.SliceOf(k); ok {
			if r, ok := x.directory.Slice(id); ok {
				rows = append(rows, r)
			}
		}
	}
	var sites map[ids.Node]ids.Site
	if nodes {
		sites = map[ids.Node]ids.Site{}
		for _, n := range x.directory.Nodes() {
			sites[n.ID] = n.Site
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revision = max(x.revision, revision)
	if sites != nil {
		x.sites = sites
	}
	x.mergeLocked(rows)
}

// mergeLocked joins rows in. x.mu is held.
func (x *index) mergeLocked(rows []geoconfig.SliceRow) {
	slices.SortFunc(rows, func(a, b geoconfig.SliceRow) int { return cmp.Compare(a.ID, b.ID) })
	var between []geoconfig.SliceRow
	for _, r := range rows {
		i, found := slices.BinarySearchFunc(x.rows, r.ID, func(a geoconfig.SliceRow, id ids.Slice) int { return cmp.Compare(a.ID, id) })
		switch {
		case found:
			x.rows[i], x.entries[i] = r, x.entryLocked(&r)
		case i == len(x.rows):
			x.rows, x.entries = append(x.rows, r), append(x.entries, x.entryLocked(&r))
		default:
			between = append(between, r)
		}
	}
	if len(between) == 0 {
		return
	}
	x.rows = append(x.rows, between...)
	slices.SortFunc(x.rows, func(a, b geoconfig.SliceRow) int { return cmp.Compare(a.ID, b.ID) })
	x.entries = x.entries[:0]
	for i := range x.rows {
		x.entries = append(x.entries, x.entryLocked(&x.rows[i]))
	}
}

// query says which slices, in which order, from where on.
type query struct {
	state, sort string
	site, home  ids.Site
	node        ids.Node
	text        string
	descending  bool
	afterKey    int64 // with afterID: the last slice of the page before
	afterID     ids.Slice
	hasAfter    bool
	limit       int
	isUp        func(ids.Node) bool
}

// page is what a query finds.
type page struct {
	rows     []geoconfig.SliceRow
	total    int
	more     bool
	revision ids.Revision
}

// find answers a query: it looks at each entry once and keeps the first limit of
// those behind the cursor. It begins at the end where the order is descending, so
// that most entries come too late to be kept.
func (x *index) find(ctx context.Context, q query) (page, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := page{revision: x.revision}
	top, f := &heapOf{q: &q}, x.filterLocked(&q)
	for n := range x.entries {
		if n%8192 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		i := n
		if q.descending {
			i = len(x.entries) - 1 - n
		}
		e := &x.entries[i]
		if !f.matches(e, &x.rows[i]) {
			continue
		}
		out.total++
		k := e.key(q.sort)
		if q.hasAfter && !before(&q, q.afterKey, q.afterID, k, e.id) {
			continue
		}
		out.more = top.offer(ranked{k, e.id, i}) || out.more
	}
	for _, r := range top.sorted() {
		out.rows = append(out.rows, x.rows[r.at])
	}
	return out, nil
}

// rowKey is what entry.key is for the row.
func rowKey(sort string, r *geoconfig.SliceRow) int64 {
	e := entry{id: r.ID, level: int32(r.Policy.Level), normals: int32(normals(r)), epoch: r.Epoch, revision: r.Revision}
	return e.key(sort)
}

// before reports whether one slice comes before another one in a query's order.
func before(q *query, ak int64, a ids.Slice, bk int64, b ids.Slice) bool {
	c := cmp.Or(cmp.Compare(ak, bk), cmp.Compare(a, b))
	if q.descending {
		return c > 0
	}
	return c < 0
}

// normals counts a slice's members that are up to date, without a list of them.
func normals(r *geoconfig.SliceRow) int {
	n := 0
	for _, m := range r.Members {
		if m.State == geoconfig.Normal {
			n++
		}
	}
	return n
}

// stateOf says how a slice stands. Where its active does not answer, nobody knows
// more than that.
func stateOf(r *geoconfig.SliceRow, isUp func(ids.Node) bool) string {
	switch {
	case !isUp(r.Active):
		return unavailable
	case normals(r) < r.Policy.Level:
		return underProtected
	}
	return protected
}

// The states of a slice.
const (
	protected      = "protected"
	underProtected = "under_protected"
	unavailable    = "unavailable"
)

// each calls f with every row, by ID. f may keep the row's members but not change
// them, and must not call the index.
func (x *index) each(f func(*geoconfig.SliceRow)) ids.Revision {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.rows {
		f(&x.rows[i])
	}
	return x.revision
}

// siteOf returns the site of a node; empty: it is not known.
func (x *index) siteOf(id ids.Node) ids.Site {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sites[id]
}

// len counts the slices.
func (x *index) len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.rows)
}
