package requests

import (
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// Clients keeps the peers that said hello.
type Clients interface {
	Hello(peer string, req *pb.HelloRequest) (*identity.Who, error)
	Client(peer string) (*identity.Who, error)
}

// Greeter answers the hello and the keep-alives of clients. Both are quick, and
// run on the goroutine that reads the connection. Every field is needed.
type Greeter struct {
	Self    ids.Node
	Site    string
	Cluster func() ids.Cluster
	Clients Clients
	// Greet says why a client of a site may not be greeted now; nil: it may.
	Greet func(ids.Site) error
	// Session is how long a session outlives its last keep-alive, at most.
	Session time.Duration
	// KeepAlive opens or prolongs a user's session.
	KeepAlive func(peer, user string, client uint64, req *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error)
}

// Hello admits a client, and tells it who this node is and whom it takes the
// client for.
func (g *Greeter) Hello(r *wire.Request) {
	var req pb.HelloRequest
	if !decode(r, &req) {
		return
	}
	err := g.Greet(ids.Site(req.Site))
	var w *identity.Who
	if err == nil {
		w, err = g.Clients.Hello(r.Peer, &req)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(&pb.HelloResponse{Cluster: string(g.Cluster()), Node: string(g.Self), Site: g.Site, Version: method.ProtocolVersion,
		Trusted: w.Trusted, Uid: w.UID, Gids: w.GIDs, MaxSessionNs: uint64(g.Session),
		Nonce: w.Nonce[:], TicketNs: access.TicketLife(w)})
}

// Prolong opens or prolongs a client's session.
func (g *Greeter) Prolong(r *wire.Request) {
	w, err := g.Clients.Client(r.Peer)
	if err != nil {
		r.Fail(err)
		return
	}
	var req pb.KeepAliveRequest
	if !decode(r, &req) {
		return
	}
	if err := w.Is(req.Client); err != nil {
		r.Fail(err)
		return
	}
	answer, err := g.KeepAlive(r.Peer, string(w.User), w.Client, &req)
	reply(r, answer, err)
}
