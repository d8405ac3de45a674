// Package index keeps the slices' rows for the admin API in an order in which a page
// of them is found without copying the table. It decides nothing and asks nobody:
// its owner tells it which rows changed. An Index is safe for concurrent use.
package index

import (
	"cmp"
	"context"
	"slices"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/cluster"
)

// Directory is the copy of the configuration that the rows come from.
type Directory interface {
	Slice(ids.Slice) (geoconfig.SliceRow, bool)
	Nodes() []geoconfig.Node
}

// Index has the slices' rows by ID, and the nodes' sites.
type Index struct {
	directory Directory

	mu      sync.RWMutex         // guards the rest
	rows    []geoconfig.SliceRow // by ID; a row's members are never changed
	entries []entry              // of the rows, in the same order
	sites   map[ids.Node]ids.Site
	// numbers are those of the nodes that a row ever named: a node keeps its number.
	numbers  map[ids.Node]int32
	revision ids.Revision
}

// New returns an Index without rows.
func New(d Directory) *Index {
	return &Index{directory: d, sites: map[ids.Node]ids.Site{}, numbers: map[ids.Node]int32{}}
}

// Apply takes in the rows that changed.
func (x *Index) Apply(keys []geoconfig.RowKey, revision ids.Revision) {
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
func (x *Index) mergeLocked(rows []geoconfig.SliceRow) {
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

// Query says which slices, in which order, from where on.
type Query struct {
	// State, Site, Home, Node and Text are filters: the state, the site or ID of a
	// member, the policy's home, and how the slice's number begins. Empty: all pass.
	State      string
	Site, Home ids.Site
	Node       ids.Node
	Text       string
	// Sort is id, epoch, revision, level or missing.
	Sort       string
	Descending bool
	// Limit bounds the page.
	Limit int
	// IsUp says whether a node answers.
	IsUp func(ids.Node) bool

	afterKey int64 // with afterID: the last slice of the page before
	afterID  ids.Slice
	hasAfter bool
}

// Page is what a query finds. The rows' members belong to the Index and are not changed.
type Page struct {
	Rows []geoconfig.SliceRow
	// Total counts what passes the filters, and More says that rows follow the page.
	Total    int
	More     bool
	Revision ids.Revision
}

// Find answers a query: it looks at each entry once and keeps the first Limit of
// those behind the cursor. It begins at the end where the order is descending, so
// that most entries come too late to be kept.
func (x *Index) Find(ctx context.Context, q Query) (Page, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := Page{Revision: x.revision}
	top, f := &heapOf{q: &q}, x.filterLocked(&q)
	for n := range x.entries {
		if n%8192 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		i := n
		if q.Descending {
			i = len(x.entries) - 1 - n
		}
		e := &x.entries[i]
		if !f.matches(e, &x.rows[i]) {
			continue
		}
		out.Total++
		k := e.key(q.Sort)
		if q.hasAfter && !before(&q, q.afterKey, q.afterID, k, e.id) {
			continue
		}
		out.More = top.offer(ranked{k, e.id, i}) || out.More
	}
	for _, r := range top.sorted() {
		out.Rows = append(out.Rows, x.rows[r.at])
	}
	return out, nil
}

// Each calls f with every row, by ID. f may keep the row's members but not change
// them, and must not call the index.
func (x *Index) Each(f func(*geoconfig.SliceRow)) ids.Revision {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.rows {
		f(&x.rows[i])
	}
	return x.revision
}

// SiteOf returns the site of a node; empty: it is not known.
func (x *Index) SiteOf(id ids.Node) ids.Site {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sites[id]
}

// Len counts the slices.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.rows)
}
