package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/wire"
)

// roster is whom the geo-config server talks to: the nodes, the admins, and who
// has a token to join. It follows the store.
type roster struct {
	given map[string]bool // the keys of admins that the command line names
	wall  func() time.Time

	mu    sync.RWMutex // guards below
	nodes map[string]bool
	users map[string]geoconfig.User // those that may do something here, by name
	// admins and tokens are the same users by key.
	admins map[string]bool
	tokens map[string]joinToken
	// spent has the tokens whose rows went lately. They stay admitted for a
	// while: the answer to what used them up may have to be given again. They can
	// do nothing more, since each of their batches must remove the row.
	spent   map[string]spentToken
	cluster geoconfig.Cluster // its row; ID "": there is none yet
	// reached is the revision up to which all rows are taken in, and moved is
	// closed when it rises.
	reached ids.Revision
	moved   chan struct{}
}

// spentToken is a token whose row is gone, and until when it is admitted.
type spentToken struct {
	joinToken
	until time.Time
}

// spentLife is how long a token is admitted after its row went.
const spentLife = 30 * time.Second

// joinToken is the row of a token.
type joinToken struct {
	geoconfig.Join
	row geoconfig.RowKey
}

func newRoster(admins []string, wall func() time.Time) *roster {
	r := &roster{given: map[string]bool{}, wall: wall, nodes: map[string]bool{}, users: map[string]geoconfig.User{}, spent: map[string]spentToken{}, moved: make(chan struct{})}
	for _, id := range admins {
		r.given[id] = true
	}
	return r
}

// admit says whether a peer may connect at all.
func (r *roster) admit(peer string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.isAdminLocked(peer) || r.nodes[peer] {
		return nil
	}
	token, ok := r.tokenLocked(peer)
	switch {
	case !ok:
		return fault.E(fault.Unauthorized, opRoster, peer, "is neither a node of the roster nor an admin: join with a token, or add its row to the nodes first")
	case r.wall().UnixNano() > token.ExpiresNS:
		return fault.E(fault.Expired, opRoster, token.row.String(), "the token has expired: make another one with `cartwheel cluster token`")
	}
	return nil
}

// allow says whether a peer may read the configuration, or change something.
func (r *roster) allow(peer string, change bool) error {
	if err := r.admit(peer); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, ok := r.tokenLocked(peer); ok && !change && !r.isAdminLocked(peer) {
		return fault.E(fault.Unauthorized, opRoster, peer, "a token only adds a node; it reads nothing")
	}
	return nil
}

// tokenLocked returns the token that a key is of, with mu held.
func (r *roster) tokenLocked(peer string) (joinToken, bool) {
	if t, ok := r.tokens[peer]; ok {
		return t, true
	}
	t, ok := r.spent[peer]
	return t.joinToken, ok && r.wall().Before(t.until)
}

// isAdminLocked reports whether a peer may administer the cluster. r.mu is held.
func (r *roster) isAdminLocked(peer string) bool { return r.given[peer] || r.admins[peer] }

// isTrusted reports whether a peer is a node of the roster or an admin. One with a
// token is not: anybody may have that.
func (r *roster) isTrusted(peer string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.nodes[peer] || r.isAdminLocked(peer)
}

const opRoster fault.Op = "daemon.admit"

const opMayChange fault.Op = "daemon.mayChange"

// mayChange lets admins change everything, and a node what it must: slices, the
// audit log, its own row, a site that nobody has named, the cluster's secret where
// it has none, a higher feature level, and snapshots and the history of drills, which
// an administrator orders from a node. Whoever takes a node's key makes no users
// with it, and no accounts or sessions, by which it could become an administrator
// elsewhere.
func (r *roster) mayChange(peer string, b *geoconfig.Batch) error {
	r.mu.RLock()
	admin := r.isAdminLocked(peer)
	token, joins := r.tokenLocked(peer)
	r.mu.RUnlock()
	switch {
	case admin:
		return nil
	case joins:
		return token.mayChange(b)
	}
	what := ""
	switch {
	case b.Cluster != nil && !r.mayChangeCluster(*b.Cluster): // another first node was faster, if this is one
		return fault.E(fault.Conflict, opMayChange, peer, "a node may not change the cluster's row, which has a secret: use the key of an admin")
	case slices.ContainsFunc(b.Sites, func(s geoconfig.Site) bool { return s.Revision != 0 }):
		what = "a site that is there"
	case len(b.Users) > 0:
		what = "the users"
	}
	for i := range b.Records {
		if key := b.Records[i].Key(); !mayKeep(key) {
			what = key.String()
		}
	}
	for i := range b.Remove {
		if key := b.Remove[i].Key; !mayKeep(key) {
			what = key.String() + ", which is to go"
		}
	}
	for i := range b.Nodes {
		if string(b.Nodes[i].ID) != peer {
			what = "the row of node " + string(b.Nodes[i].ID)
		}
	}
	if what != "" {
		return fault.E(fault.Permission, opMayChange, peer, "a node may not change "+what+": use the key of an admin")
	}
	return nil
}

// mayKeep reports whether nodes keep records of this kind for administrators.
func mayKeep(key geoconfig.RowKey) bool { return named.IsSnapshot(key) || drill.IsRecord(key) }

// mayChange lets a token add one node at its site, with its own row gone in the
// same batch, so that it does so once.
func (t joinToken) mayChange(b *geoconfig.Batch) error {
	fits := len(b.Nodes) == 1 && b.Nodes[0].Revision == 0 && b.Nodes[0].Site == t.Site &&
		len(b.Remove) == 1 && b.Remove[0].Key == t.row &&
		b.Cluster == nil && len(b.Sites)+len(b.Users)+len(b.Slices)+len(b.Records) == 0
	if !fits {
		return fault.Errorf(fault.Permission, opRoster, t.row.String(), "a token adds one new node at %s, and its own row goes with that; nothing else", t.Site)
	}
	return nil
}

// mayChangeCluster reports whether a node may write this row of the cluster: it may
// add the secret where there is none, or else raise the feature level alone.
func (r *roster) mayChangeCluster(c geoconfig.Cluster) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.cluster.Secret == "" {
		return true
	}
	raised := r.cluster
	raised.Feature, raised.Revision = c.Feature, c.Revision
	return raised == c && c.Feature >= r.cluster.Feature
}

// follow keeps the roster up to date until ctx ends.
func (r *roster) follow(ctx context.Context, store geoconfig.Store, since ids.Revision, host *wire.Host) error {
	for ctx.Err() == nil {
		rows, err := store.Follow(ctx, since, 0)
		if err != nil {
			if ctx.Err() != nil || fault.Is(err, fault.Closed) {
				return nil
			}
			if err := outlive(ctx, err); err != nil {
				return err
			}
			continue
		}
		r.take(rows)
		if len(rows.Removed)+len(rows.Users) > 0 {
			host.Recheck() // who is not on the roster any more is cut
		}
		since = rows.Revision
	}
	return nil
}

// await waits until the roster knows all up to a revision, or ctx ends.
func (r *roster) await(ctx context.Context, rev ids.Revision) {
	for {
		r.mu.RLock()
		reached, moved := r.reached, r.moved
		r.mu.RUnlock()
		if reached >= rev {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// rostered is a store whose changes the roster knows before they are answered: a
// key that was just admitted may connect at once, and one that was just revoked
// may not.
type rostered struct {
	geoconfig.Store
	roster *roster
}

// rosterLimit bounds how long an answer waits for the roster.
const rosterLimit = time.Second

// Apply implements geoconfig.Store.
func (s rostered) Apply(ctx context.Context, b geoconfig.Batch) (ids.Revision, error) {
	rev, err := s.Store.Apply(ctx, b)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, rosterLimit)
		defer cancel()
		s.roster.await(ctx, rev)
	}
	return rev, err
}

// take takes in rows that changed.
func (r *roster) take(rows geoconfig.Rows) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows.Revision > r.reached {
		r.reached = rows.Revision
		close(r.moved)
		r.moved = make(chan struct{})
	}
	if c := rows.Cluster; c != nil {
		r.cluster = *c
	}
	for _, n := range rows.Nodes {
		r.nodes[string(n.ID)] = true
	}
	for _, u := range rows.Users {
		delete(r.users, string(u.Name))
		if u.Join != nil || u.Admin {
			r.users[string(u.Name)] = u
		}
	}
	for _, gone := range rows.Removed {
		switch gone.Key.Table {
		case geoconfig.NodesTable:
			delete(r.nodes, gone.Key.Name)
		case geoconfig.UsersTable:
			delete(r.users, gone.Key.Name)
		}
	}
	r.indexLocked()
}

// indexLocked finds the users by their keys, with mu held.
func (r *roster) indexLocked() {
	was, now := r.tokens, r.wall()
	maps.DeleteFunc(r.spent, func(_ string, t spentToken) bool { return !now.Before(t.until) })
	r.admins, r.tokens = map[string]bool{}, map[string]joinToken{}
	for _, u := range r.users {
		if u.Join != nil {
			r.tokens[u.Key] = joinToken{*u.Join, u.RowKey()}
		} else {
			r.admins[u.Key] = true
		}
	}
	for key, t := range was {
		if _, ok := r.tokens[key]; !ok {
			r.spent[key] = spentToken{t, now.Add(spentLife)}
		}
	}
}
