// Package identity knows who stands behind each connected peer: a node of the
// cluster, or a user whose key a client proved to hold. It checks no
// permissions on objects; package tree does. A Registry is safe for concurrent
// use.
package identity

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// Who is a peer that said hello.
type Who struct {
	User    ids.User
	Client  uint64 // the client's number, which follows from its peer ID
	Name    string // host and mount point, for people
	Site    string // where it says that it stands; only for traces
	UID     uint32
	GIDs    []uint32
	Trusted bool
	Nonce   [32]byte // of this introduction: proofs that the client has chunks are keyed by it
	Admin   bool
	Node    bool   // a node of the cluster asks, in its own name
	key     string // the user's
}

// Roster is what the registry asks of the cluster's configuration.
type Roster interface {
	User(key string) (geoconfig.User, bool)
	Node(id ids.Node) (geoconfig.Node, bool)
	Cluster() geoconfig.Cluster
}

// Registry keeps the peers that said hello, as long as they are connected.
type Registry struct {
	self   string
	roster Roster

	mu    sync.RWMutex // guards peers
	peers map[string]*Who
}

// New returns a Registry for the node with the given peer ID.
func New(self string, roster Roster) *Registry {
	return &Registry{self: self, roster: roster, peers: map[string]*Who{}}
}

// Hello admits a client that holds the key of a known user.
func (r *Registry) Hello(peer string, req *pb.HelloRequest) (*Who, error) {
	const op fault.Op = "identity.Hello"
	if req.Version > method.ProtocolVersion {
		return nil, fault.Errorf(fault.NewerVersion, op, peer, "the client speaks version %d, this node %d: upgrade the node", req.Version, method.ProtocolVersion)
	}
	if c := r.roster.Cluster(); req.Cluster != "" && ids.Cluster(req.Cluster) != c.ID {
		return nil, fault.Errorf(fault.WrongCluster, op, peer, "this node belongs to cluster %s, not %s", c.ID, req.Cluster)
	}
	if err := wire.Verify(req.UserKey, method.HelloProof(peer, r.self), req.Signature); err != nil {
		return nil, fault.Wrap(fault.Unauthorized, op, peer, err)
	}
	key, err := wire.PublicID(req.UserKey)
	if err != nil {
		return nil, fault.Wrap(fault.Unauthorized, op, peer, err)
	}
	user, ok := r.roster.User(key)
	if !ok {
		return nil, fault.E(fault.Unauthorized, op, key, "no user of this cluster has this key: add it to the users first")
	}
	if wrong := user.Check(); wrong != "" {
		return nil, fault.E(fault.Unauthorized, op, user.RowKey().String(), wrong)
	}
	number := method.ClientNumber(peer)
	if req.Client != 0 && req.Client != number {
		return nil, fault.E(fault.Unauthorized, op, peer, "the client's number is not the one that its key gives it")
	}
	w := &Who{User: user.Name, Client: number, Name: req.Name, Site: req.Site, UID: user.UID, GIDs: user.GIDs, Trusted: user.TrustedHost,
		Admin: user.Admin, key: key}
	_, _ = rand.Read(w.Nonce[:]) // never fails
	r.mu.Lock()
	r.peers[peer] = w
	r.mu.Unlock()
	return w, nil
}

// Client returns who a client's peer is; Unauthorized where it has not said
// hello. The result must not be changed.
func (r *Registry) Client(peer string) (*Who, error) {
	r.mu.RLock()
	w := r.peers[peer]
	r.mu.RUnlock()
	if w == nil {
		return nil, fault.E(fault.Unauthorized, "identity.Client", peer, "say hello first")
	}
	return w, nil
}

// Is answers Unauthorized where a message names another client than the one
// that sent it; 0 names the sender.
func (w *Who) Is(client uint64) error {
	if client != 0 && client != w.Client {
		return fault.E(fault.Unauthorized, "identity.Is", w.Name, "the message carries the number of another client")
	}
	return nil
}

// IsNode reports whether the peer is a node of the cluster.
func (r *Registry) IsNode(peer string) bool {
	_, ok := r.roster.Node(ids.Node(peer))
	return ok
}

// Node answers Unauthorized unless the peer is a node of the cluster.
func (r *Registry) Node(peer string) error {
	if !r.IsNode(peer) {
		return fault.E(fault.Unauthorized, "identity.Node", peer, "only nodes of the cluster may ask this")
	}
	return nil
}

// IsElsewhere reports whether a peer, node or client, stands at another site
// than the given one, as far as that is known. A client's site is the one that
// it names itself.
func (r *Registry) IsElsewhere(peer string, site ids.Site) bool {
	if n, ok := r.roster.Node(ids.Node(peer)); ok {
		return n.Site != site
	}
	w, err := r.Client(peer)
	return err == nil && ids.Site(w.Site) != site
}

// SiteOf returns where a peer stands, node or client; empty: that is not known. A
// client's site is the one that it names itself.
func (r *Registry) SiteOf(peer string) ids.Site {
	if n, ok := r.roster.Node(ids.Node(peer)); ok {
		return n.Site
	}
	if w, err := r.Client(peer); err == nil {
		return ids.Site(w.Site)
	}
	return ""
}

// Admit says whether a peer may send more than a hello, and for which account
// its connections count: a client's for its user's, a node's for none.
func (r *Registry) Admit(peer string) (account string, ok bool) {
	if w, err := r.Client(peer); err == nil {
		return string(w.User), true
	}
	return "", r.IsNode(peer)
}

// Order answers Permission unless an admin asks.
func (w *Who) Order(op fault.Op) error {
	if !w.Admin {
		return fault.E(fault.Permission, op, string(w.User), "only an administrator may order this: set admin in the user's row")
	}
	return nil
}

// Recheck forgets the clients whose users are gone, or act as another by now:
// they have to say hello again.
func (r *Registry) Recheck() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for peer, w := range r.peers {
		if u, ok := r.roster.User(w.key); !ok || !w.is(u) {
			delete(r.peers, peer)
		}
	}
}

func (w *Who) is(u geoconfig.User) bool {
	return u.Name == w.User && u.UID == w.UID && slices.Equal(u.GIDs, w.GIDs) && u.TrustedHost == w.Trusted && u.Admin == w.Admin
}

// Peer answers Unauthorized unless the peer is a node or a client that said hello.
func (r *Registry) Peer(peer string) error {
	if _, err := r.Client(peer); err == nil {
		return nil
	}
	return r.Node(peer)
}

// Forget drops a peer that is gone.
func (r *Registry) Forget(peer string) {
	r.mu.Lock()
	delete(r.peers, peer)
	r.mu.Unlock()
}

// Count returns how many clients are known.
func (r *Registry) Count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.peers)
}

// Clients lists the clients that said hello, by user and name, at most limit.
func (r *Registry) Clients(limit int) []Who {
	r.mu.RLock()
	out := make([]Who, 0, len(r.peers))
	for _, w := range r.peers {
		out = append(out, Who{User: w.User, Client: w.Client, Name: w.Name, Site: w.Site, UID: w.UID, Trusted: w.Trusted, Admin: w.Admin})
	}
	r.mu.RUnlock()
	slices.SortFunc(out, func(a, b Who) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Client, b.Client))
	})
	return out[:min(limit, len(out))]
}

// Acts returns as whom a client's request acts: a trusted host says it
// itself, everybody else is the key's user.
func (w *Who) Acts(p *pb.Principal) (uid, gid uint32, groups []uint32) {
	if w.Trusted && p != nil {
		return p.Uid, p.Gid, p.Groups
	}
	if len(w.GIDs) > 0 {
		gid = w.GIDs[0]
	}
	return w.UID, gid, w.GIDs
}
