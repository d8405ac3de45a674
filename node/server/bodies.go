package server

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// The handlers of calls that carry chunks in their bodies.

func (s *Server) have(ctx context.Context, r *wire.Request) {
	var req pb.HaveRequest
	w, ok := s.admitted(r, &req)
	if !ok {
		return
	}
	var answer *pb.HaveResponse
	var err error
	if h := holder(w); h == nil {
		answer, err = s.content.Have(&req)
	} else if answer, err = s.content.Proved(ctx, &req, w.Nonce); err == nil {
		answer.Owned = s.ownedOf(w, req.Addresses, answer.Missing)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

func (s *Server) put(ctx context.Context, r *wire.Request) {
	var req pb.PutRequest
	w, ok := s.admitted(r, &req)
	if !ok {
		return
	}
	req.Chain = s.chain(&req)
	body := r.TakeBody()
	user := ""
	if w.Client != 0 {
		user = string(w.User)
	}
	answer, err := s.content.Put(ctx, user, &req, body.Bytes())
	if err != nil {
		r.Fail(err)
		return
	}
	if len(answer.Stored) > len(req.Chain) {
		body.Release() // otherwise it may still be on its way to the next node
	}
	answer.Owned = s.ownedOf(w, req.Addresses, nil)
	r.Reply(answer)
}

func (s *Server) get(ctx context.Context, r *wire.Request) {
	var req pb.GetRequest
	w, ok := s.admitted(r, &req)
	if !ok {
		return
	}
	err := s.mayHave(w, req.Object, req.Root, req.Readable)
	if err == nil && holder(w) != nil {
		err = s.content.LeadsTo(&req)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	answer, body, done, err := s.content.Get(ctx, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	if len(answer.Missing) > 0 {
		answer.Refusal = s.reading.Refused(ids.Slice(req.Slice))
	}
	r.ReplyOwned(done, answer, body)
}

func (s *Server) ranges(ctx context.Context, r *wire.Request) {
	var req pb.RangeRequest
	w, ok := s.admitted(r, &req)
	if !ok {
		return
	}
	if err := s.mayHave(w, req.Object, req.Root, req.Readable); err != nil {
		r.Fail(err)
		return
	}
	answer, body, done, err := s.content.Range(ctx, &req)
	if fault.Is(err, fault.Missing) {
		// A node that just started, or is taking over, may have in its journal alone
		// what is committed: the client asks again once a node acts for the slice.
		if refusal := s.reading.Refused(ids.Slice(req.Slice)); refusal != nil {
			r.Reply(&pb.RangeResponse{Refusal: refusal})
			return
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

// files answers with the records of files and, in the body, with what content
// there is room for. Content that is not here is asked for by who reads it.
func (s *Server) files(ctx context.Context, r *wire.Request) {
	var req pb.FilesRequest
	w, ok := s.admitted(r, &req)
	if !ok {
		return
	}
	answer, err := s.reading.Files(ctx, s.asker(w, req.Header), &req)
	if err != nil {
		r.Fail(err)
		return
	}
	roots := make([]chunk.Root, len(answer.Files))
	for i, f := range answer.Files {
		roots[i] = rootOf(f.Attr)
	}
	body, sizes, done, err := s.content.Files(ctx, roots, int(req.DataBytes))
	if err != nil || done == nil {
		r.Reply(answer)
		return
	}
	for i, f := range answer.Files {
		f.DataLength = sizes[i]
	}
	r.ReplyOwned(done, answer, body)
}

// rootOf is the manifest of a file; the zero Root where it has none.
func rootOf(a *pb.Attr) chunk.Root {
	address, err := chunk.AddressOf(a.GetContent().GetRoot())
	if err != nil {
		return chunk.Root{}
	}
	return chunk.Root{Address: address, Height: uint8(a.Content.Height), Size: a.Size, Stored: a.Content.Stored}
}

// admitted decodes a request of a peer that said hello or is a node; where ok is
// false, it was answered.
func (s *Server) admitted(r *wire.Request, m proto.Message) (w *identity.Who, ok bool) {
	w, err := s.caller(r.Peer)
	if err != nil {
		r.Fail(err)
		return nil, false
	}
	return w, decoded(r, m)
}

func decoded(r *wire.Request, m proto.Message) bool {
	if err := r.Decode(m); err != nil {
		r.Fail(err)
		return false
	}
	return true
}

// chain is what a request may have its chunks passed on to: the other members of
// its slice, each once. Whoever is left out fetches later.
func (s *Server) chain(req *pb.PutRequest) []string {
	row, _ := s.directory.Slice(ids.Slice(req.Slice))
	var out []string
	for _, id := range req.Chain {
		if _, member := row.Member(ids.Node(id)); member && id != string(s.id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
