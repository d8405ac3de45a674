package api

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
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

	mu       sync.RWMutex         // guards the rest
	rows     []geoconfig.SliceRow // by ID; a row's members are never changed
	sites    map[ids.Node]ids.Site
	revision ids.Revision
}

func newIndex(d Directory) *index { return &index{directory: d, sites: map[ids.Node]ids.Site{}} }

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
	added := false
	for _, r := range rows {
		i, found := slices.BinarySearchFunc(x.rows, r.ID, func(a geoconfig.SliceRow, id ids.Slice) int { return cmp.Compare(a.ID, id) })
		switch {
		case found && !added:
			x.rows[i] = r
		default: // sorted below, the newer one of two with one ID first
			x.rows, added = append(x.rows, r), true
		}
	}
	if !added {
		return
	}
	slices.SortStableFunc(x.rows, func(a, b geoconfig.SliceRow) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Epoch, a.Epoch), cmp.Compare(b.Revision, a.Revision))
	})
	x.rows = slices.CompactFunc(x.rows, func(a, b geoconfig.SliceRow) bool { return a.ID == b.ID })
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

// find answers a query: it looks at each row once and keeps the first limit of
// those behind the cursor.
func (x *index) find(ctx context.Context, q query) (page, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := page{revision: x.revision}
	top := &heapOf{q: &q}
	for i := range x.rows {
		if i%8192 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		r := &x.rows[i]
		if !x.matchesLocked(&q, r) {
			continue
		}
		out.total++
		k := sortKey(&q, r)
		if q.hasAfter && !before(&q, q.afterKey, q.afterID, k, r.ID) {
			continue
		}
		out.more = top.offer(k, r) || out.more
	}
	out.rows = top.sorted()
	return out, nil
}

// matchesLocked reports whether a row passes the filters. x.mu is held.
func (x *index) matchesLocked(q *query, r *geoconfig.SliceRow) bool {
	if q.home != "" && r.Policy.Home != q.home || q.state != "" && stateOf(r, q.isUp) != q.state {
		return false
	}
	if q.text != "" && !strings.HasPrefix(strconv.FormatUint(uint64(r.ID), 10), q.text) {
		return false
	}
	if q.node == "" && q.site == "" {
		return true
	}
	return slices.ContainsFunc(r.Members, func(m geoconfig.Member) bool {
		return (q.node == "" || m.Node == q.node) && (q.site == "" || x.sites[m.Node] == q.site)
	})
}

// sortKey is the number by which slices are ordered; equal ones go by ID.
func sortKey(q *query, r *geoconfig.SliceRow) int64 {
	switch q.sort {
	case "epoch":
		return int64(r.Epoch)
	case "revision":
		return int64(r.Revision)
	case "level":
		return int64(r.Policy.Level)
	case "missing":
		return int64(r.Policy.Level - normals(r))
	}
	return int64(r.ID)
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
