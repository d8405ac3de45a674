package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/pb"
)

// The handlers of calls that carry chunks in their bodies.

func (s *Server) have(r *wire.Request) {
	var req pb.HaveRequest
	if s.refuseStranger(r) || !decoded(r, &req) {
		return
	}
	answer, err := s.content.Have(&req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

func (s *Server) put(ctx context.Context, r *wire.Request) {
	var req pb.PutRequest
	if s.refuseStranger(r) || !decoded(r, &req) {
		return
	}
	answer, err := s.content.Put(ctx, &req, r.Body())
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

func (s *Server) get(ctx context.Context, r *wire.Request) {
	var req pb.GetRequest
	if s.refuseStranger(r) || !decoded(r, &req) {
		return
	}
	answer, body, done, err := s.content.Get(ctx, &req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.ReplyOwned(done, answer, body)
}

func (s *Server) ranges(ctx context.Context, r *wire.Request) {
	var req pb.RangeRequest
	if s.refuseStranger(r) || !decoded(r, &req) {
		return
	}
	answer, body, done, err := s.content.Range(ctx, &req)
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
	if s.refuseStranger(r) || !decoded(r, &req) {
		return
	}
	answer, err := s.reading.Files(ctx, &req)
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

// refuseStranger answers peers that are neither nodes nor said hello.
func (s *Server) refuseStranger(r *wire.Request) bool {
	if err := s.who.Peer(r.Peer); err != nil {
		r.Fail(err)
		return true
	}
	return false
}

func decoded(r *wire.Request, m proto.Message) bool {
	if err := r.Decode(m); err != nil {
		r.Fail(err)
		return false
	}
	return true
}
