package cluster

import (
	"fmt"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

// Feed collects the keys of rows that changed, for a reader that keeps something
// derived from them. It holds each key once, however often the row changed, so
// that the table bounds it. A Feed is safe for concurrent use.
type Feed struct {
	mu       sync.Mutex // guards the rest; taken with the Directory's mu held
	keys     map[geoconfig.RowKey]struct{}
	revision ids.Revision
	ready    chan struct{} // has room for one word: there is something
}

// Ready returns a channel that receives once there is something to take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take returns the keys of the rows that changed since the last call, in no order,
// and the revision up to which the store has been followed.
func (f *Feed) Take() ([]geoconfig.RowKey, ids.Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]geoconfig.RowKey, 0, len(f.keys))
	for k := range f.keys {
		out = append(out, k)
	}
	f.keys = map[geoconfig.RowKey]struct{}{}
	return out, f.revision
}

func (f *Feed) add(revision ids.Revision, keys ...geoconfig.RowKey) {
	f.mu.Lock()
	for _, k := range keys {
		f.keys[k] = struct{}{}
	}
	f.revision = max(f.revision, revision)
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default: // a word waits already
	}
}

// Watch returns a Feed that begins with the keys of all rows. stop ends it.
func (d *Directory) Watch() (f *Feed, stop func()) {
	f = &Feed{keys: map[geoconfig.RowKey]struct{}{}, ready: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []geoconfig.RowKey
	for id := range d.slices {
		keys = append(keys, geoconfig.SliceKey(id))
	}
	for id := range d.nodes {
		keys = append(keys, geoconfig.Node{ID: id}.Key())
	}
	for name := range d.sites {
		keys = append(keys, geoconfig.Site{Name: name}.Key())
	}
	for _, u := range d.users {
		keys = append(keys, u.RowKey())
	}
	f.add(d.rows.Revision, keys...)
	if d.feeds == nil {
		d.feeds = map[*Feed]struct{}{}
	}
	d.feeds[f] = struct{}{}
	return f, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.feeds, f)
	}
}

// feedLocked tells the feeds which rows changed. d.mu is held.
func (d *Directory) feedLocked(rows geoconfig.Rows) {
	if len(d.feeds) == 0 {
		return
	}
	var keys []geoconfig.RowKey
	if rows.Cluster != nil {
		keys = append(keys, geoconfig.ClusterKey())
	}
	for i := range rows.Sites {
		keys = append(keys, rows.Sites[i].Key())
	}
	for i := range rows.Nodes {
		keys = append(keys, rows.Nodes[i].Key())
	}
	for i := range rows.Users {
		keys = append(keys, rows.Users[i].RowKey())
	}
	for i := range rows.Slices {
		keys = append(keys, geoconfig.SliceKey(rows.Slices[i].ID))
	}
	for _, r := range rows.Removed {
		keys = append(keys, r.Key)
	}
	for f := range d.feeds {
		f.add(d.rows.Revision, keys...)
	}
}

// SliceOf returns the slice that a key names.
func SliceOf(k geoconfig.RowKey) (ids.Slice, bool) {
	var id uint32
	n, err := fmt.Sscanf(k.Name, "%d", &id)
	return ids.Slice(id), k.Table == geoconfig.SlicesTable && n == 1 && err == nil
}
