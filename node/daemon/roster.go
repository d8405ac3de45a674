package daemon

import (
	"context"
	"slices"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// roster is whom the geo-config server talks to: the nodes, and the admins. It
// follows the store.
type roster struct {
	admins map[string]bool

	mu     sync.RWMutex // guards below
	nodes  map[string]bool
	secret bool // the cluster has one
}

func newRoster(admins []string) *roster {
	r := &roster{admins: map[string]bool{}, nodes: map[string]bool{}}
	for _, id := range admins {
		r.admins[id] = true
	}
	return r
}

func (r *roster) allow(peer string, _ bool) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.admins[peer] && !r.nodes[peer] {
		return fault.E(fault.Unauthorized, "daemon.roster", peer, "is neither a node of the roster nor an admin: add its row to the nodes first")
	}
	return nil
}

// mayChange lets admins change everything, and a node what it must: slices, the
// audit log, its own row, a site that nobody has named, and the cluster's secret
// where it has none. Whoever takes a node's key makes no users with it.
func (r *roster) mayChange(peer string, b *geoconfig.Batch) error {
	if r.admins[peer] {
		return nil
	}
	what := ""
	switch {
	case b.Cluster != nil && r.hasSecret(): // another first node was faster, if this is one
		return fault.E(fault.Conflict, "daemon.roster", peer, "a node may not change the cluster's row, which has a secret: use the key of an admin")
	case slices.ContainsFunc(b.Sites, func(s geoconfig.Site) bool { return s.Revision != 0 }):
		what = "a site that is there"
	case len(b.Users) > 0:
		what = "the users"
	case len(b.Remove) > 0:
		what = b.Remove[0].Key.String() + ", which is to go"
	}
	for i := range b.Nodes {
		if string(b.Nodes[i].ID) != peer {
			what = "the row of node " + string(b.Nodes[i].ID)
		}
	}
	if what != "" {
		return fault.E(fault.Permission, "daemon.roster", peer, "a node may not change "+what+": use the key of an admin")
	}
	return nil
}

func (r *roster) hasSecret() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.secret
}

func (r *roster) set(peer string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known {
		r.nodes[peer] = true
	} else {
		delete(r.nodes, peer)
	}
}

// follow keeps the roster up to date until ctx ends.
func (r *roster) follow(ctx context.Context, store geoconfig.Store, since ids.Revision, host *wire.Host) error {
	for ctx.Err() == nil {
		rows, err := store.Follow(ctx, since, 0)
		if err != nil {
			if ctx.Err() != nil || fault.Is(err, fault.Closed) {
				return nil
			}
			return err
		}
		r.take(rows)
		if len(rows.Removed) > 0 {
			host.Recheck() // a node that is not on the roster any more is cut
		}
		since = rows.Revision
	}
	return nil
}

func (r *roster) take(rows geoconfig.Rows) {
	if c := rows.Cluster; c != nil {
		r.mu.Lock()
		r.secret = c.Secret != ""
		r.mu.Unlock()
	}
	for _, n := range rows.Nodes {
		r.set(string(n.ID), true)
	}
	for _, gone := range rows.Removed {
		if gone.Key.Table == geoconfig.NodesTable {
			r.set(gone.Key.Name, false)
		}
	}
}
