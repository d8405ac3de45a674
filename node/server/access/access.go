// Package access says as whom a request acts, and what it may name. A peer proves
// a user's key or is a node; a user's request shows tickets for the objects,
// versions and chunks that it names, and its answer carries new ones. Package
// identity knows the peers, package ticket seals, and package tree checks the
// permissions of objects; this one asks them for each request. A Control has no
// state of its own and is safe for concurrent use.
package access

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
)

// Peers knows who stands behind each connection.
type Peers interface {
	// Client returns who a peer is that said hello.
	Client(peer string) (*identity.Who, error)
	// Node answers nil where the peer is a node of the cluster.
	Node(peer string) error
}

// Sessions knows the clients' sessions with this node.
type Sessions interface {
	// Valid answers nil where the session is the client's and lives.
	Valid(session, client uint64) error
	// Alone reports whether the session is the client's and has a directory
	// exclusively.
	Alone(session, client uint64, dir ids.Object) bool
}

// Reading checks rights at the objects themselves, and seals tickets for what a
// user sees.
type Reading interface {
	HasReached(who *reading.Asker, o ids.Object, ticket []byte) bool
	Reached(ctx context.Context, who *reading.Asker, o ids.Object, ticket []byte) error
	MayMake(ctx context.Context, who *reading.Asker, apart *pb.MakeObject) error
	Stamp(who *reading.Asker, a *pb.Attr, could chunk.Address)
}

// Control answers for each request who asks and what it may name. Every field is
// needed, and none changes.
type Control struct {
	Peers    Peers
	Sessions Sessions
	Tickets  *ticket.Sealer
	Reading  Reading
}

// Caller returns who a peer acts as: the user whose key it proved, or the system
// where it is a node.
func (c *Control) Caller(peer string) (*identity.Who, error) {
	if w, err := c.Peers.Client(peer); err == nil {
		return w, nil
	}
	if err := c.Peers.Node(peer); err != nil {
		return nil, fault.E(fault.Unauthorized, "access.Caller", peer, "say hello first")
	}
	return &identity.Who{User: "node", Trusted: true, Node: true}, nil
}

// Asker returns who asks in a read. Its session counts where it is the caller's
// own.
func (c *Control) Asker(w *identity.Who, h *pb.ReadHeader) reading.Asker {
	return reading.Asker{Principal: Principal(w, h.GetPrincipal()), Trusted: w.Trusted, Session: c.OwnSession(w, h.GetSession()),
		Client: w.Client, Holder: Holder(w), Named: w.Trusted && h.GetPrincipal().GetUid() != 0, Eventual: h.GetEventual() && h.GetAsOf() == 0, AsOf: hlc.Time(h.GetAsOf())}
}

// OwnSession returns the session where it is the caller's and lives, else 0. So
// no client gets leases, or is spared a revocation, under the number of another
// one.
func (c *Control) OwnSession(w *identity.Who, session uint64) uint64 {
	if session == 0 || c.Sessions.Valid(session, w.Client) != nil {
		return 0
	}
	return session
}

// Principal returns the user and groups that a request acts as.
func Principal(w *identity.Who, p *pb.Principal) tree.Principal {
	uid, gid, groups := w.Acts(p)
	return tree.Principal{UID: uid, GID: gid, Groups: groups}
}

// Holder returns for whom tickets are sealed and who must show them: users whose
// key acts as one uid. It is nil for a trusted host. That key acts as any user,
// root too, and the host's kernel checks what its users may open.
func Holder(w *identity.Who) *ticket.Holder {
	if w.Trusted {
		return nil
	}
	return &ticket.Holder{User: w.User, UID: w.UID}
}

// TicketLife returns how long a client's tickets are good for, in nanoseconds; 0:
// it needs none.
func TicketLife(w *identity.Who) uint64 {
	if Holder(w) == nil {
		return 0
	}
	return uint64(ticket.Life)
}
