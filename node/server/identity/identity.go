// Package identity knows who stands behind each connected peer: a node of the
// cluster, or a user whose key a client proved to hold. It checks no
// permissions on objects; package tree does. A Registry is safe for concurrent
// use.
package identity

import (
	"sync"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// Who is a peer that said hello.
type Who struct {
	User    geoconfig.UserName
	Client  uint64 // the client's registration number
	Name    string // host and mount point, for people
	Site    string // where it says that it stands; only for traces
	UID     uint32
	GIDs    []uint32
	Trusted bool
}

// Roster is what the registry asks of the cluster's configuration.
type Roster interface {
	User(key string) (geoconfig.User, bool)
	Node(id geoconfig.NodeID) (geoconfig.Node, bool)
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
	if c := r.roster.Cluster(); req.Cluster != "" && geoconfig.ClusterID(req.Cluster) != c.ID {
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
	w := &Who{User: user.Name, Client: req.Client, Name: req.Name, Site: req.Site, UID: user.UID, GIDs: user.GIDs, Trusted: user.TrustedHost}
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

// IsNode reports whether the peer is a node of the cluster.
func (r *Registry) IsNode(peer string) bool {
	_, ok := r.roster.Node(geoconfig.NodeID(peer))
	return ok
}

// Node answers Unauthorized unless the peer is a node of the cluster.
func (r *Registry) Node(peer string) error {
	if !r.IsNode(peer) {
		return fault.E(fault.Unauthorized, "identity.Node", peer, "only nodes of the cluster may ask this")
	}
	return nil
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
