package server

import (
	"context"

	"google.golang.org/protobuf/proto"

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
