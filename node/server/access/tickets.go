package access

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
)

// MayHave refuses a user the bytes of a version for which it shows no ticket.
func (c *Control) MayHave(w *identity.Who, o uint64, root, readable []byte) error {
	h := Holder(w)
	if h == nil {
		return nil
	}
	a, err := chunk.AddressOf(root)
	if err != nil || !c.Tickets.OpenReadable(readable, *h, ids.Object(o), a) {
		return fault.E(fault.Permission, "access.MayHave", ids.Object(o).String(), "the request shows no ticket to read this version of the file")
	}
	return nil
}

// MayNameChunks refuses a commit of a user that names chunks without tickets
// that the user had their bytes. A hash gives no right to what it is the hash of.
func (c *Control) MayNameChunks(w *identity.Who, o *pb.Operation) error {
	h := Holder(w)
	commit := o.GetCommit() // those of a batch name none
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
		if err == nil && !c.Tickets.OpenOwned(e.Owned, *h, a) {
			return fault.E(fault.Missing, "access.MayNameChunks", a.String(), "the commit shows no ticket for the chunk: put it first")
		}
	}
	return nil
}

// MayNameObject refuses a name for an object that another client made: the
// request shows the ticket that the maker got.
func (c *Control) MayNameObject(w *identity.Who, o *pb.Operation) error {
	link := o.GetLinkName()
	if link == nil {
		return nil
	}
	return c.Tickets.OpenMade(link.Made, ticket.Made{Client: w.Client, Object: ids.Object(link.Object), Dir: ids.Object(link.Dir), Mode: link.Mode & tree.TypeMask})
}

// SealMade gives the maker of an object the ticket to name it. A repeated
// answer has the first one's end, so that it names nothing later.
func (c *Control) SealMade(client uint64, o *pb.Operation, result *pb.Result, at hlc.Time) {
	apart := o.GetMakeObject()
	if apart == nil || client == 0 || result.Kind != 0 || result.Attr == nil {
		return
	}
	result.Made = c.Tickets.SealMade(ticket.Made{Client: client, Object: ids.Object(result.Attr.Object),
		Dir: ids.Object(apart.Parent), Mode: result.Attr.Mode & tree.TypeMask}, at.Wall())
}

// StampResult gives a user the tickets of what its operation made or changed.
func (c *Control) StampResult(who *reading.Asker, r *pb.Result) {
	for _, a := range []*pb.Attr{r.Attr, r.Dir, r.NewDir} {
		c.Reading.Stamp(who, a, chunk.Address{})
	}
	for _, part := range r.Results {
		c.Reading.Stamp(who, part.Attr, chunk.Address{})
	}
}

// Owned returns tickets that a user had the bytes of chunks. A ticket is empty
// where the chunk's bit is set in missing.
func (c *Control) Owned(w *identity.Who, addresses, missing []byte) [][]byte {
	h := Holder(w)
	if h == nil {
		return nil
	}
	var out [][]byte
	for i := 0; len(addresses) >= chunk.AddressSize; i++ {
		var t []byte
		if i/8 >= len(missing) || missing[i/8]&(1<<(i%8)) == 0 {
			t = c.Tickets.Owned(*h, chunk.Address(addresses[:chunk.AddressSize]))
		}
		out, addresses = append(out, t), addresses[chunk.AddressSize:]
	}
	return out
}

// Unproven is what a user's operation names without tickets. Nil: nothing.
type Unproven struct {
	objects []ids.Object   // whose directories must be searchable
	apart   *pb.MakeObject // for whose directory the rights are not shown; nil: none
}

// Unproven returns what an operation names for which its user shows no tickets,
// or nil.
func (c *Control) Unproven(who *reading.Asker, req *pb.OperateRequest) *Unproven {
	u := Unproven{objects: c.unreached(who, req)}
	if !c.provesMake(who, req) {
		u.apart = req.Operation.GetMakeObject()
	}
	if len(u.objects) == 0 && u.apart == nil {
		return nil
	}
	return &u
}

// unreached lists what an operation names that its user shows no ticket for, and
// that is no directory which the request's session has exclusively: no session gets
// one that its user has not reached. The directory of an object that is made apart
// has checks of its own.
func (c *Control) unreached(who *reading.Asker, req *pb.OperateRequest) []ids.Object {
	if who.Holder == nil || req.Operation.GetMakeObject() != nil {
		return nil
	}
	ticketFor := func(o uint64) []byte { return method.Ticket(req.Tickets, o) }
	if req.Operation.GetBatch() != nil {
		shown := make(map[uint64][]byte, len(req.Tickets))
		for _, t := range req.Tickets {
			shown[t.Object] = t.Ticket
		}
		ticketFor = func(o uint64) []byte { return shown[o] }
	}
	var out []ids.Object
	for _, o := range method.Names(req.Operation) {
		id := ids.Object(o)
		if !c.Reading.HasReached(who, id, ticketFor(o)) && !(req.Session != 0 && c.Sessions.Alone(req.Session, who.Client, id)) {
			out = append(out, id)
		}
	}
	return out
}

// provesMake reports whether a request to make an object for a directory of
// another slice shows that its user may add names there, and takes no other
// group than the user's or the directory's. Other operations need no such proof.
func (c *Control) provesMake(who *reading.Asker, req *pb.OperateRequest) bool {
	apart := req.Operation.GetMakeObject()
	if apart == nil || who.Holder == nil {
		return true
	}
	rights, gid, ok := c.Tickets.OpenReached(method.Ticket(req.Tickets, apart.Parent), *who.Holder, ids.Object(apart.Parent))
	own := !apart.UseGid || rights&ticket.Inherits != 0 && gid == apart.Gid || who.Principal.In(apart.Gid)
	return ok && rights&ticket.MayAdd != 0 && own
}

// Check checks at the objects what an operation shows no tickets for. It may ask
// other nodes.
func (c *Control) Check(ctx context.Context, who *reading.Asker, u *Unproven) error {
	for _, o := range u.objects {
		if err := c.Reading.Reached(ctx, who, o, nil); err != nil {
			return err
		}
	}
	if u.apart == nil {
		return nil
	}
	return c.Reading.MayMake(ctx, who, u.apart)
}
