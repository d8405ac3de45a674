// Package registration keeps a node's own row in the configuration: where the
// node stands and listens, how much room it has, and which version it runs. It
// adds the node's site and the cluster's secret where they are missing. It reads
// and writes no other rows. A Registrar is safe for concurrent use.
package registration

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/server/ticket"
)

const (
	// registerAgain is the pause before a new node asks again to be registered.
	registerAgain = 250 * time.Millisecond
	// refreshTimeout bounds one refresh of the row; the next one comes soon.
	refreshTimeout = 2 * time.Second
	// putTries bounds how often a row is written anew because another node changed
	// the configuration meanwhile.
	putTries = 21
)

// Store is the configuration store.
type Store interface {
	Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
	Apply(context.Context, geoconfig.Batch) (ids.Revision, error)
}

// Roster is this node's copy of the configuration.
type Roster interface {
	Node(ids.Node) (geoconfig.Node, bool)
	Cluster() geoconfig.Cluster
	// Away is since when the configuration store is away; zero: it is not.
	Away() time.Time
	Refresh(context.Context) error
}

// Options are what a Registrar is made of. Every field is needed.
type Options struct {
	Self   ids.Node
	Site   ids.Site
	Store  Store
	Roster Roster
	// Describe puts what the node says of itself into its row.
	Describe func(*geoconfig.Node)
	// Feature is the highest feature level that this program knows.
	Feature int
	// Key names a batch of some kind.
	Key    func(kind string) string
	Logger *slog.Logger
}

// Registrar writes the node's row. It has no state of its own.
type Registrar struct{ o Options }

// New returns a registrar that has written nothing yet.
func New(o Options) *Registrar { return &Registrar{o: o} }

// Register brings the node's row up to date. While the store is away, a node that
// the configuration knows goes on, and the row follows with a refresh. A new one
// waits for the store until ctx ends.
func (r *Registrar) Register(ctx context.Context) error {
	if _, known := r.o.Roster.Node(r.o.Self); known && !r.o.Roster.Away().IsZero() {
		return nil
	}
	for {
		err := r.put(ctx)
		if err == nil && r.o.Roster.Cluster().Secret == "" {
			return r.o.Roster.Refresh(ctx) // this node has just made it
		}
		if !fault.Is(err, fault.Unreachable) && !fault.Is(err, fault.TimedOut) {
			return err
		}
		if _, known := r.o.Roster.Node(r.o.Self); known {
			return nil
		}
		t := time.NewTimer(registerAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// Refresh writes the node's row anew, as far as the store is there.
func (r *Registrar) Refresh(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if err := r.put(call); err != nil && ctx.Err() == nil {
		r.o.Logger.Debug("the node's row could not be refreshed", logattr.Err(err))
	}
}

// put writes the node's row, and what it needs that is missing.
func (r *Registrar) put(ctx context.Context) error {
	const op fault.Op = "registration.put"
	for try := 1; ; try++ {
		rows, err := r.o.Store.Read(ctx, geoconfig.Query{Sites: true, Nodes: true})
		if err != nil {
			return fault.Wrap(fault.Unreachable, op, "geo-config", err)
		}
		if err := CheckFeature(rows.Cluster, r.o.Feature); err != nil {
			return err
		}
		_, err = r.o.Store.Apply(ctx, r.batch(&rows))
		if err == nil {
			r.raiseFeature(ctx, &rows)
			return nil
		}
		if !fault.Is(err, fault.Conflict) || try > putTries {
			return fault.Wrap(fault.Unreachable, op, "geo-config", err)
		}
	}
}

// batch is what to change in the rows that the store has.
func (r *Registrar) batch(rows *geoconfig.Rows) geoconfig.Batch {
	b := geoconfig.Batch{Key: r.o.Key("register")}
	if !slices.ContainsFunc(rows.Sites, func(s geoconfig.Site) bool { return s.Name == r.o.Site }) {
		b.Sites = append(b.Sites, geoconfig.Site{Name: r.o.Site})
	}
	n := geoconfig.Node{ID: r.o.Self}
	if i := slices.IndexFunc(rows.Nodes, func(n geoconfig.Node) bool { return n.ID == r.o.Self }); i >= 0 {
		n = rows.Nodes[i]
	}
	n.Site = r.o.Site
	n.Feature = r.o.Feature
	r.o.Describe(&n)
	b.Nodes = append(b.Nodes, n)
	if c := rows.Cluster; c != nil && c.Secret == "" {
		made := *c
		made.Secret = newSecret()
		b.Cluster = &made
	}
	return b
}

// raiseFeature switches on what all nodes know by now, as the rows say that were
// read before this node wrote its own. Refused by a geo-config of an older
// version, or late, it comes with another refresh.
func (r *Registrar) raiseFeature(ctx context.Context, rows *geoconfig.Rows) {
	c := rows.Cluster
	if c == nil || c.Secret == "" {
		return // geo-config looks at what a node changes here: one thing at a time
	}
	raised := *c
	raised.Feature = common(rows.Nodes, r.o.Self, r.o.Feature)
	if raised.Feature <= c.Feature {
		return
	}
	_, err := r.o.Store.Apply(ctx, geoconfig.Batch{Key: r.o.Key("feature"), Cluster: &raised})
	if err != nil {
		r.o.Logger.Debug("the feature level could not be raised", logattr.Err(err))
		return
	}
	r.o.Logger.Info("switched features on that all nodes know", slog.Int("level", raised.Feature))
}

// common returns the highest feature level that all nodes know, this one among
// them. Nodes that never started do not count: they check the level when they do.
func common(nodes []geoconfig.Node, self ids.Node, known int) int {
	for _, n := range nodes {
		if n.ID != self && n.Incarnation != 0 {
			known = min(known, n.Feature)
		}
	}
	return known
}

// CheckFeature refuses, as NewerVersion, a cluster that uses features of a higher
// level than this program knows.
func CheckFeature(c *geoconfig.Cluster, known int) error {
	if c == nil || c.Feature <= known {
		return nil
	}
	return fault.Errorf(fault.NewerVersion, "registration.CheckFeature", string(c.ID),
		"the cluster uses features of level %d, and this program knows up to %d: update it", c.Feature, known)
}

// newSecret returns a secret for a cluster that has none.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return ticket.NewSecret(b)
}
