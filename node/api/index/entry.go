package index

import (
	"slices"
	"strconv"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// inlined is how many members an entry has room for. Rows with more are looked at
// themselves.
const inlined = 6

// entry is what queries look at of a row: small and without pointers, so that a
// look at all of a large table takes a few milliseconds.
type entry struct {
	id             ids.Slice
	level, normals int32
	epoch          ids.Epoch
	revision       ids.Revision
	active         int32 // a node's number, as are the members
	members        [inlined]int32
	count          int32
}

// entryLocked makes the entry of a row. x.mu is held.
func (x *Index) entryLocked(r *geoconfig.SliceRow) entry {
	e := entry{id: r.ID, level: int32(r.Policy.Level), normals: int32(Normals(r)), epoch: r.Epoch, revision: r.Revision,
		active: x.numberLocked(r.Active), count: int32(len(r.Members))}
	for i := range min(len(r.Members), inlined) {
		e.members[i] = x.numberLocked(r.Members[i].Node)
	}
	return e
}

// numberLocked returns a node's number. x.mu is held.
func (x *Index) numberLocked(id ids.Node) int32 {
	n, ok := x.numbers[id]
	if !ok {
		n = int32(len(x.numbers))
		x.numbers[id] = n
	}
	return n
}

// key is the number by which slices are ordered; equal ones go by ID.
func (e *entry) key(sort string) int64 {
	switch sort {
	case "epoch":
		return int64(e.epoch)
	case "revision":
		return int64(e.revision)
	case "level":
		return int64(e.level)
	case "missing":
		return int64(e.level - e.normals)
	}
	return int64(e.id)
}

// filter is a query with its nodes and sites looked up once.
type filter struct {
	q *Query
	// up and chosen say by a node's number whether it answers, and whether a slice
	// with it is asked for.
	up, chosen []bool
	place      bool // whether chosen matters
	sites      map[ids.Node]ids.Site
}

// filterLocked prepares a query. x.mu is held.
func (x *Index) filterLocked(q *Query) *filter {
	f := &filter{q: q, up: make([]bool, len(x.numbers)), chosen: make([]bool, len(x.numbers)), place: q.Node != "" || q.Site != "", sites: x.sites}
	for id, n := range x.numbers {
		f.up[n], f.chosen[n] = q.IsUp(id), f.chooses(id)
	}
	return f
}

func (f *filter) chooses(id ids.Node) bool {
	return (f.q.Node == "" || id == f.q.Node) && (f.q.Site == "" || f.sites[id] == f.q.Site)
}

// matches reports whether a slice passes the filters.
func (f *filter) matches(e *entry, r *geoconfig.SliceRow) bool {
	if f.q.State != "" && f.state(e) != f.q.State || f.q.Home != "" && r.Policy.Home != f.q.Home {
		return false
	}
	if f.q.Text != "" && !strings.HasPrefix(strconv.FormatUint(uint64(e.id), 10), f.q.Text) {
		return false
	}
	if !f.place {
		return true
	}
	if e.count > inlined {
		return slices.ContainsFunc(r.Members, func(m geoconfig.Member) bool { return f.chooses(m.Node) })
	}
	return slices.ContainsFunc(e.members[:e.count], func(n int32) bool { return f.chosen[n] })
}

// state is what StateOf says of the row.
func (f *filter) state(e *entry) string {
	switch {
	case !f.up[e.active]:
		return Unavailable
	case e.normals < e.level:
		return UnderProtected
	}
	return Protected
}
