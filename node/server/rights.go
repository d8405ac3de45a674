package server

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// caller is who a peer acts as: the user whose key it proved, or the system
// where it is a node.
func (s *Server) caller(peer string) (*identity.Who, error) {
	if w, err := s.who.Client(peer); err == nil {
		return w, nil
	}
	return s.system(peer)
}

// system is who a node acts as.
func (s *Server) system(peer string) (*identity.Who, error) {
	if err := s.who.Node(peer); err != nil {
		return nil, fault.E(fault.Unauthorized, "server.handle", peer, "say hello first")
	}
	return &identity.Who{User: "node", Trusted: true}, nil
}

func principal(w *identity.Who, p *pb.Principal) tree.Principal {
	uid, gid, groups := w.Acts(p)
	return tree.Principal{UID: uid, GID: gid, Groups: groups}
}

// asker is who asks in a read. Its session counts where it is the caller's own.
func (s *Server) asker(w *identity.Who, h *pb.ReadHeader) reading.Asker {
	return reading.Asker{Principal: principal(w, h.GetPrincipal()), Trusted: w.Trusted, Session: s.own(w, h.GetSession()),
		Client: w.Client, Holder: holder(w), Named: w.Trusted && h.GetPrincipal().GetUid() != 0}
}

// holder is for whom tickets are sealed and from whom they are wanted: users
// whose key acts as one uid. A trusted host's key acts as any, root too; its
// kernel checks what its users may open.
func holder(w *identity.Who) *ticket.Holder {
	if w.Trusted {
		return nil
	}
	return &ticket.Holder{User: w.User, UID: w.UID}
}

// ticketLife is how long a client's tickets are good for; 0: it needs none.
func ticketLife(w *identity.Who) uint64 {
	if holder(w) == nil {
		return 0
	}
	return uint64(ticket.Life)
}

// own returns the session where it is the caller's and lives, else 0: nobody
// gets leases, or is spared a revocation, under the number of another client.
func (s *Server) own(w *identity.Who, session uint64) uint64 {
	if session == 0 || s.sessions.Valid(session, w.Client) != nil {
		return 0
	}
	return session
}

// attrElsewhere reads the attributes of an object at the node that acts for its
// slice.
func (s *Server) attrElsewhere(ctx context.Context, o ids.Object) (*pb.Attr, error) {
	const op fault.Op = "server.attrElsewhere"
	row, ok := s.directory.Slice(o.Slice())
	if !ok || row.Active == s.id {
		return nil, fault.E(fault.Again, op, o.String(), "no node acts for the slice now")
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	var answer pb.GetAttrResponse
	b, err := s.host.Call(ctx, string(row.Active), wire.Operation, method.GetAttr,
		&pb.GetAttrRequest{Header: &pb.ReadHeader{Slice: uint32(row.ID)}, Object: uint64(o)}, nil, &answer)
	b.Release()
	switch {
	case err != nil:
		return nil, err
	case answer.Refusal != nil || answer.Attr == nil:
		return nil, fault.E(fault.Again, op, o.String(), "the slice changes hands")
	}
	return answer.Attr, nil
}

// mayHave refuses a user the bytes of a version that it shows no ticket for.
func (s *Server) mayHave(w *identity.Who, o uint64, root, readable []byte) error {
	h := holder(w)
	if h == nil {
		return nil
	}
	a, err := chunk.AddressOf(root)
	if err != nil || !s.tickets.OpenReadable(readable, *h, ids.Object(o), a) {
		return fault.E(fault.Permission, "server.mayHave", ids.Object(o).String(), "the request shows no ticket to read this version of the file")
	}
	return nil
}

// mayNameChunks refuses a commit of a user that names chunks without tickets
// that the user had their bytes: a hash gives no right to what it is the hash of.
func (s *Server) mayNameChunks(w *identity.Who, o *pb.Operation) error {
	h := holder(w)
	commit := o.GetCommit()
	if create := o.GetCreate(); create != nil {
		commit = create.Commit
	}
	if h == nil {
		return nil
	}
	for _, e := range commit.GetExtents() {
		src, ok := e.Source.(*pb.Extent_Chunk)
		if !ok {
			continue
		}
		a, err := chunk.AddressOf(src.Chunk)
		if err == nil && !s.tickets.OpenOwned(e.Owned, *h, a) {
			return fault.E(fault.Missing, "server.mayNameChunks", a.String(), "the commit shows no ticket for the chunk: put it first")
		}
	}
	return nil
}

// unreached lists what an operation names that its user shows no ticket for. The
// directory of an object that is made apart has checks of its own.
func (s *Server) unreached(who *reading.Asker, req *pb.OperateRequest) []ids.Object {
	if who.Holder == nil || req.Operation.GetMakeObject() != nil {
		return nil
	}
	var out []ids.Object
	for _, o := range method.Names(req.Operation) {
		if id := ids.Object(o); !s.reading.HasReached(who, id, method.Ticket(req.Tickets, o)) {
			out = append(out, id)
		}
	}
	return out
}

// provedMake reports whether a request to make an object for a directory of
// another slice shows that its user may add names there, and takes no other
// group than the user's or the directory's. Other operations need no such proof.
func (s *Server) provedMake(who *reading.Asker, req *pb.OperateRequest) bool {
	apart := req.Operation.GetMakeObject()
	if apart == nil || who.Holder == nil {
		return true
	}
	rights, gid, ok := s.tickets.OpenReached(method.Ticket(req.Tickets, apart.Parent), *who.Holder, ids.Object(apart.Parent))
	own := !apart.UseGid || rights&ticket.Inherits != 0 && gid == apart.Gid || who.Principal.In(apart.Gid)
	return ok && rights&ticket.MayAdd != 0 && own
}

// checkApart makes the checks of an operation for which it shows no tickets.
// They may ask other nodes.
func (s *Server) checkApart(ctx context.Context, who *reading.Asker, unreached []ids.Object, apart *pb.MakeObject) error {
	for _, o := range unreached {
		if err := s.reading.Reached(ctx, who, o, nil); err != nil {
			return err
		}
	}
	if apart == nil {
		return nil
	}
	return s.reading.MayMake(ctx, who, apart)
}

// stampResult gives a user the tickets of what its operation made or changed.
func (s *Server) stampResult(who *reading.Asker, r *pb.Result) {
	for _, a := range []*pb.Attr{r.Attr, r.Dir, r.NewDir} {
		s.reading.Stamp(who, a, chunk.Address{})
	}
}

// ownedOf returns tickets that a user had the bytes of chunks, empty where the
// bit of one is set in missing.
func (s *Server) ownedOf(w *identity.Who, addresses, missing []byte) [][]byte {
	h := holder(w)
	if h == nil {
		return nil
	}
	var out [][]byte
	for i := 0; len(addresses) >= chunk.AddressSize; i++ {
		var t []byte
		if i/8 >= len(missing) || missing[i/8]&(1<<(i%8)) == 0 {
			t = s.tickets.Owned(*h, chunk.Address(addresses[:chunk.AddressSize]))
		}
		out, addresses = append(out, t), addresses[chunk.AddressSize:]
	}
	return out
}

// checkCues refuses an object whose cues no path can spell.
func checkCues(o *pb.Operation) error {
	if create := o.GetCreate(); create != nil {
		return cue.Check(create.Cues)
	}
	return cue.Check(o.GetMakeObject().GetCues())
}
