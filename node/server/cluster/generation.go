package cluster

import (
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// floorLocked is the lowest generation of a store that this node obeys. d.mu is held.
func (d *Directory) floorLocked() ids.Generation {
	if c := d.rows.Cluster; c != nil {
		return max(d.rows.Floor, c.Generation)
	}
	return d.rows.Floor
}

// Floor returns the lowest generation of a store that this node obeys.
func (d *Directory) Floor() ids.Generation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.floorLocked()
}

// Refused says why the store that answers is not obeyed; nil: it is, or none answers.
func (d *Directory) Refused() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// check refuses, as WrongCluster, what a store of an older generation answers.
func (d *Directory) check(rows *geoconfig.Rows) error {
	return Obeyed(rows.Cluster, d.Floor())
}

// Obeyed refuses, as WrongCluster, a store whose generation is below a node's floor.
func Obeyed(c *geoconfig.Cluster, floor ids.Generation) error {
	if c == nil || c.Generation >= floor {
		return nil
	}
	return fault.Errorf(fault.WrongCluster, "cluster.Obeyed", string(c.ID),
		"the database is of generation %d and was replaced: this node obeys generation %d and later", c.Generation, floor)
}

// isLost reports whether a row is of a store that the node does not obey any more. A
// row of no generation gets its store's.
func isLost(r *geoconfig.SliceRow, floor ids.Generation) bool {
	return r.Generation != 0 && r.Generation < floor
}

// Promise has the node obey no store of a lower generation than this from now on,
// also after a restart: an administrator is about to rebuild the store. Once it
// returns, no older store changes what this node knows. Errors: Conflict where the
// node has promised or obeyed more, and IO where the promise cannot be kept.
func (d *Directory) Promise(g ids.Generation) error {
	d.mu.Lock()
	if floor := d.floorLocked(); g < floor {
		d.mu.Unlock()
		return fault.Errorf(fault.Conflict, "cluster.Promise", "", "the node obeys generation %d and later, not %d: begin again, another rebuild may be under way", floor, g)
	}
	if d.rows.Floor < g {
		d.rows.Floor, d.dirty = g, true
	}
	d.mu.Unlock()
	d.tellStore()
	// What Run is about to take in of an older store comes before the copy or not at all.
	d.notify.Lock()
	defer d.notify.Unlock()
	return d.save()
}

// knower is a store that tells its server the lowest generation that this node obeys.
type knower interface{ Know(ids.Generation) }

// tellStore tells the store which generation this node obeys.
func (d *Directory) tellStore() {
	if k, ok := d.o.Store.(knower); ok {
		k.Know(d.Floor())
	}
}

// takeClusterLocked takes the cluster's row in, and reports whether its generation
// rises. Then all that is known is of a lost store. The new one is followed from its
// beginning, and what it does not bring goes in the end. d.mu is held.
func (d *Directory) takeClusterLocked(c *geoconfig.Cluster) bool {
	if c == nil {
		return false
	}
	was := d.rows.Cluster
	d.rows.Cluster = c
	if was == nil || c.Generation <= was.Generation {
		return false
	}
	d.rows.Revision, d.dirty = 0, true
	d.stale = map[geoconfig.RowKey]bool{}
	for _, s := range d.sites {
		d.stale[s.Key()] = true
	}
	for _, n := range d.nodes {
		d.stale[n.Key()] = true
	}
	for _, u := range d.users {
		d.stale[u.RowKey()] = true
	}
	for _, r := range d.slices {
		if r.Generation < c.Generation { // a peer may have brought a later one
			d.stale[geoconfig.SliceKey(r.ID)] = true
		}
	}
	return true
}

// sweepLocked removes what a store of a new generation does not have, once all of it
// is here, and returns what went. d.mu is held.
func (d *Directory) sweepLocked(rows *geoconfig.Rows) []geoconfig.Removal {
	if d.stale == nil {
		return nil
	}
	for i := range rows.Sites {
		delete(d.stale, rows.Sites[i].Key())
	}
	for i := range rows.Nodes {
		delete(d.stale, rows.Nodes[i].Key())
	}
	for i := range rows.Users {
		delete(d.stale, rows.Users[i].RowKey())
	}
	for i := range rows.Slices {
		delete(d.stale, geoconfig.SliceKey(rows.Slices[i].ID))
	}
	if rows.More {
		return nil
	}
	var gone []geoconfig.Removal
	for key := range d.stale {
		d.removeLocked(key)
		gone = append(gone, geoconfig.Removal{Key: key, Revision: rows.Revision})
	}
	d.stale = nil
	return gone
}

// Copy returns all rows that this node remembers, by their names, as of the revision
// that it reached. Rows of slices may be newer: peers bring them, too.
func (d *Directory) Copy() geoconfig.Rows {
	d.notify.Lock() // a batch is here whole or not at all
	defer d.notify.Unlock()
	out := geoconfig.Rows{Sites: d.Sites(), Nodes: d.Nodes(), Users: d.Users(), Slices: d.Slices(), Revision: d.Revision()}
	if c := d.Cluster(); c.ID != "" {
		out.Cluster = &c
	}
	return out
}
