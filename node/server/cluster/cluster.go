// Package cluster keeps a node's copy of the cluster's configuration: it
// follows the store, learns newer slice rows from peers, and keeps everything
// beside the data, so that a node starts and goes on without the store. It
// changes no row and decides nothing. A Directory is safe for concurrent use.
// What it returns belongs to the caller, except the lists within the rows of
// nodes and users: all callers share those, and none may change them.
package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
)

// Options configure a Directory.
type Options struct {
	Store geoconfig.Store
	// File keeps the rows between lives; empty: nothing is kept.
	File string
	// Slices hears of slice rows that are newer than what was known. It is
	// called from one goroutine at a time, and in order for each slice.
	Slices func([]geoconfig.SliceRow)
	// Nodes hears that the nodes' table changed.
	Nodes func()
	// Users hears that the users' table changed, or the nodes' lost a row.
	Users  func()
	Logger *slog.Logger
	// Retry is how long to wait after the store failed, at first; 250 ms.
	Retry time.Duration
}

// Directory is the node's copy.
type Directory struct {
	o Options

	notify sync.Mutex // held while o.Slices runs, taken before mu

	mu      sync.Mutex // guards the rest; never held across I/O
	rows    kept
	slices  map[ids.Slice]geoconfig.SliceRow
	nodes   map[ids.Node]geoconfig.Node
	sites   map[ids.Site]geoconfig.Site
	users   map[string]geoconfig.User // by key
	away    time.Time                 // since when the store is not reachable; zero: it is
	refused error                     // why the store that answers is not obeyed; nil: it is, or none answers
	stale   map[geoconfig.RowKey]bool // rows of the former generation that the new one has not brought yet
	dirty   bool                      // something is not in the file yet
	changed chan struct{}             // closed and replaced when rows change
	feeds   map[*Feed]struct{}        // hear which rows changed

	saving sync.Mutex // held while the file is written, taken before mu
}

// kept is what the file holds besides the tables.
type kept struct {
	Cluster  *geoconfig.Cluster `json:"cluster"`
	Revision ids.Revision       `json:"revision"`
	// Floor is the generation that the node has promised to an administrator: it
	// obeys no store of a lower one.
	Floor ids.Generation `json:"floor,omitempty"`
}

// New reads the file, if there is one. Run then follows the store.
func New(o Options) (*Directory, error) {
	if o.Retry == 0 {
		o.Retry = 250 * time.Millisecond
	}
	d := &Directory{o: o, changed: make(chan struct{}),
		slices: map[ids.Slice]geoconfig.SliceRow{}, nodes: map[ids.Node]geoconfig.Node{},
		sites: map[ids.Site]geoconfig.Site{}, users: map[string]geoconfig.User{}}
	err := d.load()
	d.tellStore()
	return d, err
}

// Run follows the store until ctx ends, and keeps what peers tell, too.
func (d *Directory) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	keeping.Go(func() { d.keep(ctx) })
	defer keeping.Wait()
	wait := d.o.Retry
	for ctx.Err() == nil {
		d.mu.Lock()
		since := d.rows.Revision
		d.mu.Unlock()
		rows, err := d.o.Store.Follow(ctx, since, 0)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			err = d.check(&rows)
		}
		if err != nil {
			d.failed(err)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, 5*time.Second)
			continue
		}
		wait = d.o.Retry
		d.reached()
		d.take(rows)
		d.logSave(d.save())
	}
	d.logSave(d.save())
}

// Refresh reads everything once, so that a start with the store at hand knows
// all before it serves.
func (d *Directory) Refresh(ctx context.Context) error {
	for {
		d.mu.Lock()
		since := d.rows.Revision
		d.mu.Unlock()
		q := geoconfig.Query{}
		rows, err := d.o.Store.Read(ctx, q)
		if err == nil {
			err = d.check(&rows)
		}
		if err != nil {
			d.failed(err)
			return fault.Wrap(fault.Unreachable, "cluster.Refresh", "geo-config", err)
		}
		d.reached()
		if rows.Revision <= since {
			d.logSave(d.save())
			return nil
		}
		if rows, err = d.o.Store.Follow(ctx, since, 0); err == nil {
			err = d.check(&rows)
		}
		if err != nil {
			return fault.Wrap(fault.Unreachable, "cluster.Refresh", "geo-config", err)
		}
		d.take(rows)
	}
}

// failed notes that the store did not answer, or is not to be obeyed.
func (d *Directory) failed(err error) {
	superseded := fault.Is(err, fault.WrongCluster)
	d.mu.Lock()
	first := d.away.IsZero()
	if first {
		d.away = time.Now()
	}
	firstRefusal := superseded && d.refused == nil
	d.refused = nil
	if superseded {
		d.refused = err
	}
	d.mu.Unlock()
	switch {
	case firstRefusal:
		d.o.Logger.Error("this geo-config is refused: its database is not the newest of the cluster", logattr.Err(err))
	case first:
		d.o.Logger.Warn("geo-config is away: what is configured goes on, changes wait", logattr.Err(err))
	}
}

// reached notes that the store answered.
func (d *Directory) reached() {
	d.mu.Lock()
	was := d.away
	d.away, d.refused = time.Time{}, nil
	d.mu.Unlock()
	if !was.IsZero() {
		d.o.Logger.Info("geo-config is back", slog.Duration("away", time.Since(was)))
	}
}

// Away returns since when the store is not reachable; zero: it is.
func (d *Directory) Away() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.away
}

// take joins rows of the store in.
func (d *Directory) take(rows geoconfig.Rows) {
	d.notify.Lock()
	defer d.notify.Unlock()
	d.mu.Lock()
	if Obeyed(rows.Cluster, d.floorLocked()) != nil {
		d.mu.Unlock()
		return // a promise came between the store's answer and now
	}
	if d.takeClusterLocked(rows.Cluster) {
		d.mu.Unlock()
		d.tellStore()
		return // all of the new store comes next, from its beginning
	}
	for _, s := range rows.Sites {
		d.sites[s.Name] = s
	}
	for _, n := range rows.Nodes {
		d.nodes[n.ID] = n
	}
	for _, u := range rows.Users {
		d.dropUserLocked(u.Name)
		d.users[u.Key] = u
	}
	for _, r := range rows.Removed {
		d.removeLocked(r.Key)
	}
	rows.Removed = append(rows.Removed, d.sweepLocked(&rows)...)
	newer := d.keepNewerLocked(rows.Slices)
	d.rows.Revision = max(d.rows.Revision, rows.Revision)
	d.dirty = true
	d.wakeLocked()
	d.feedLocked(rows)
	d.mu.Unlock()
	if len(newer) > 0 && d.o.Slices != nil {
		d.o.Slices(newer)
	}
	if (len(rows.Nodes) > 0 || len(rows.Removed) > 0) && d.o.Nodes != nil {
		d.o.Nodes()
	}
	if (len(rows.Users) > 0 || len(rows.Removed) > 0) && d.o.Users != nil {
		d.o.Users()
	}
}

// keepNewerLocked notes the rows of a newer epoch or revision and returns those of a
// newer epoch. d.mu is held.
func (d *Directory) keepNewerLocked(rows []geoconfig.SliceRow) []geoconfig.SliceRow {
	var newer []geoconfig.SliceRow
	for _, r := range rows {
		old, ok := d.slices[r.ID]
		if ok && (r.Epoch < old.Epoch || r.Epoch == old.Epoch && r.Revision <= old.Revision) {
			continue
		}
		d.slices[r.ID] = r.Clone()
		d.dirty = true
		if !ok || r.Epoch > old.Epoch {
			newer = append(newer, r.Clone())
		}
	}
	return newer
}

// removeLocked drops a row that the store has no more. d.mu is held.
func (d *Directory) removeLocked(key geoconfig.RowKey) {
	switch key.Table {
	case geoconfig.SitesTable:
		delete(d.sites, ids.Site(key.Name))
	case geoconfig.NodesTable:
		delete(d.nodes, ids.Node(key.Name))
	case geoconfig.UsersTable:
		d.dropUserLocked(ids.User(key.Name))
	case geoconfig.SlicesTable: // of a lost store alone: no store removes one
		if id, ok := SliceOf(key); ok {
			delete(d.slices, id)
		}
	}
}

// dropUserLocked drops a user's rows. d.mu is held.
func (d *Directory) dropUserLocked(name ids.User) {
	for key, u := range d.users {
		if u.Name == name {
			delete(d.users, key)
		}
	}
}

// wakeLocked tells Changed's callers. d.mu is held.
func (d *Directory) wakeLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Learn takes in slice rows that a peer brought or that this node wrote. A slice that
// was not known and is of a lost store stays unknown: the new store may give its
// number to another one.
func (d *Directory) Learn(rows ...geoconfig.SliceRow) {
	d.notify.Lock()
	defer d.notify.Unlock()
	d.learn(rows, func() {})
}

// LearnSwapped takes in the row that a swap of this node found or wrote, and calls
// tell before anybody else hears of it. It does neither, and returns false, where
// the node has promised meanwhile to obey only a later store than the row's.
func (d *Directory) LearnSwapped(row geoconfig.SliceRow, tell func()) bool {
	d.notify.Lock()
	defer d.notify.Unlock()
	if isLost(&row, d.Floor()) {
		return false
	}
	d.learn([]geoconfig.SliceRow{row}, tell)
	return true
}

// learn takes in rows. tell is called once they are here. d.notify is held.
func (d *Directory) learn(rows []geoconfig.SliceRow, tell func()) {
	d.mu.Lock()
	floor := d.floorLocked()
	rows = slices.DeleteFunc(slices.Clone(rows), func(r geoconfig.SliceRow) bool {
		_, known := d.slices[r.ID]
		return !known && isLost(&r, floor)
	})
	newer := d.keepNewerLocked(rows)
	if len(newer) > 0 {
		d.wakeLocked()
		d.feedLocked(geoconfig.Rows{Slices: newer})
	}
	d.mu.Unlock()
	tell()
	if len(newer) > 0 && d.o.Slices != nil {
		d.o.Slices(newer)
	}
}
