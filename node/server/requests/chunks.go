package requests

import (
	"context"
	"fmt"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/budget"
	"cartwheel.dev/node/server/chunks"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/wire"
)

// Chunks answers the calls that carry chunks in their bodies. Every field is
// needed, and none changes.
type Chunks struct {
	Self    ids.Node
	Access  *access.Control
	Content *chunks.Server
	Reading *reading.Server
	Row     func(ids.Slice) (geoconfig.SliceRow, bool)
	Shared  *Shared
	Budget  Budget
}

// Budget has content wait that goes to other sites, or comes from there.
type Budget interface {
	// Answer waits until so many bytes may go to a peer that asked for them.
	Answer(ctx context.Context, peer string, c budget.Class, bytes int) error
	// Take waits until bytes count as come that a client sent.
	Take(ctx context.Context, peer string, bytes int) error
	// Piece is how many bytes an answer that may be cut short has at most; 0: as
	// many as it likes.
	Piece(peer string) int
}

// room is what an answer to a request may take. Small ranges travel beside
// operations and never wait.
func (c *Chunks) room(r *wire.Request, slice uint32) chunks.Room {
	if r.Class != wire.Chunk {
		return chunks.Room{}
	}
	class := Purpose(c.Row, ids.Slice(slice), ids.Node(r.Peer))
	return chunks.Room{Most: c.Budget.Piece(r.Peer), Wait: func(ctx context.Context, bytes int) error {
		return c.Budget.Answer(ctx, r.Peer, class, bytes)
	}}
}

// Purpose returns why a peer asks for a slice's content: by what it is to the slice.
// A member that is new to a slice whose other copies are enough takes the place of
// one of them.
func Purpose(row func(ids.Slice) (geoconfig.SliceRow, bool), slice ids.Slice, peer ids.Node) budget.Class {
	of, _ := row(slice)
	m, member := of.Member(peer)
	switch {
	case !member:
		return budget.Foreground
	case m.State == geoconfig.Normal:
		return budget.Replication
	case m.State == geoconfig.Migrating && len(of.Normals()) >= of.Policy.Level:
		return budget.Rebalancing
	}
	return budget.Repair
}

// Have says which chunks are missing here. A user gets tickets for those of
// which it proves that it has the bytes.
func (c *Chunks) Have(ctx context.Context, r *wire.Request) {
	var req pb.HaveRequest
	w, ok := admit(c.Access, r, &req)
	if !ok {
		return
	}
	var answer *pb.HaveResponse
	var err error
	if access.Holder(w) == nil {
		answer, err = c.Content.Have(&req)
	} else if answer, err = c.Content.Proved(ctx, &req, w.Nonce); err == nil {
		answer.Owned = c.Access.Owned(w, req.Addresses, answer.Missing)
	}
	reply(r, answer, err)
}

// Put stores chunks, and has them passed on along the chain of members.
func (c *Chunks) Put(ctx context.Context, r *wire.Request) {
	var req pb.PutRequest
	w, ok := admit(c.Access, r, &req)
	if !ok {
		return
	}
	row, _ := c.Row(ids.Slice(req.Slice))
	req.Chain = chain(row, c.Self, req.Chain)
	body := r.TakeBody()
	user := ""
	if w.Client != 0 {
		user = string(w.User)
		if err := c.Budget.Take(ctx, r.Peer, len(body.Bytes())); err != nil {
			r.Fail(err)
			return
		}
	}
	answer, err := c.Content.Put(ctx, r.Peer, user, &req, body.Bytes())
	if err != nil {
		r.Fail(err)
		return
	}
	if len(answer.Stored) > len(req.Chain) {
		body.Release() // otherwise it may still be on its way to the next node
	}
	answer.Owned = c.Access.Owned(w, req.Addresses, nil)
	r.Reply(answer)
}

// chain returns to which nodes a request may have its chunks passed on: the other
// members of its slice, each once. A member that is left out fetches them later.
func chain(row geoconfig.SliceRow, self ids.Node, wanted []string) []string {
	var out []string
	for _, id := range wanted {
		if _, member := row.Member(ids.Node(id)); member && id != string(self) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Get answers with chunks of a version for which the user shows a ticket.
func (c *Chunks) Get(ctx context.Context, r *wire.Request) {
	var req pb.GetRequest
	w, ok := admit(c.Access, r, &req)
	if !ok {
		return
	}
	if req.Sharing != pb.Sharing_OWN {
		c.Shared.get(ctx, r, w, &req)
		return
	}
	err := c.Access.MayHave(w, req.Object, req.Root, req.Readable)
	if err == nil && access.Holder(w) != nil {
		err = chunks.LeadsTo(c.Content.Nodes, &req)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	answer, body, done, err := c.Content.Get(ctx, &req, c.room(r, req.Slice))
	if err != nil {
		r.Fail(err)
		return
	}
	if len(answer.Missing) > 0 {
		answer.Refusal = c.Reading.Refused(ids.Slice(req.Slice))
		if err := c.lagging(w, req.Slice); err != nil && answer.Refusal == nil {
			done()
			r.Fail(err)
			return
		}
	}
	r.ReplyOwned(done, answer, body)
}

// lagging is the error for a client that reads content which the active itself lacks.
// In a slice with a time to coherence an earlier active acknowledged it alone. Other
// nodes ask on, and are told what is missing.
func (c *Chunks) lagging(w *identity.Who, slice uint32) error {
	row, _ := c.Row(ids.Slice(slice))
	if row.Policy.Coherence == 0 || w.Client == 0 {
		return nil
	}
	return fault.E(fault.Stale, "requests.lagging", fmt.Sprintf("slices/%d", slice),
		"the node that acknowledged this content went away before another one had it: it can be read once that node is back")
}

// Range answers with a range of a version for which the user shows a ticket.
func (c *Chunks) Range(ctx context.Context, r *wire.Request) {
	var req pb.RangeRequest
	w, ok := admit(c.Access, r, &req)
	if !ok {
		return
	}
	if err := c.Access.MayHave(w, req.Object, req.Root, req.Readable); err != nil {
		r.Fail(err)
		return
	}
	answer, body, done, err := c.Content.Range(ctx, &req, c.room(r, req.Slice))
	if fault.Is(err, fault.Missing) {
		// A node that just started, or is taking over, may have in its journal alone
		// what is committed: the client asks again once a node acts for the slice.
		if refusal := c.Reading.Refused(ids.Slice(req.Slice)); refusal != nil {
			r.Reply(&pb.RangeResponse{Refusal: refusal})
			return
		}
		if lagging := c.lagging(w, req.Slice); lagging != nil {
			err = lagging
		}
	}
	switch {
	case err != nil:
		r.Fail(err)
	case done == nil:
		r.Reply(answer)
	default:
		r.ReplyOwned(done, answer, body)
	}
}

// Files answers with the records of files and, in the body, with what content
// there is room for. The reader asks for content that is not here.
func (c *Chunks) Files(ctx context.Context, r *wire.Request) {
	var req pb.FilesRequest
	w, ok := admit(c.Access, r, &req)
	if !ok {
		return
	}
	answer, err := c.Reading.Files(ctx, c.Access.Asker(w, req.Header), &req)
	if err != nil {
		r.Fail(err)
		return
	}
	roots := make([]chunk.Root, len(answer.Files))
	for i, f := range answer.Files {
		roots[i] = rootOf(f.Attr)
	}
	body, sizes, done, err := c.Content.Files(ctx, roots, int(req.DataBytes), c.room(r, 0))
	if err != nil || done == nil {
		r.Reply(answer)
		return
	}
	for i, f := range answer.Files {
		f.DataLength = sizes[i]
	}
	r.ReplyOwned(done, answer, body)
}

// rootOf returns the manifest of a file; the zero Root where it has none.
func rootOf(a *pb.Attr) chunk.Root {
	address, err := chunk.AddressOf(a.GetContent().GetRoot())
	if err != nil {
		return chunk.Root{}
	}
	return chunk.Root{Address: address, Height: uint8(a.Content.Height), Size: a.Size, Stored: a.Content.Stored}
}
