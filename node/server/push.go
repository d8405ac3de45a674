package server

import (
	"context"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/wire"
)

// maxPush bounds what one List call may have pushed; the caller asks on.
const maxPush = 16 << 20

// list answers a List call. Where the caller takes a stream, the pages before
// the last go out as they are read, so that a listing of any size costs one
// round trip.
func (s *Server) list(ctx context.Context, r *wire.Request) {
	w, err := s.caller(r.Peer)
	if err != nil {
		r.Fail(err)
		return
	}
	var req pb.ListRequest
	if !decoded(r, &req) {
		return
	}
	answer, err := s.pushed(ctx, r.Peer, s.asker(w, req.Header), &req)
	if err != nil {
		r.Fail(err)
		return
	}
	r.Reply(answer)
}

// pushed pushes pages until the last, or as many as the caller takes or the
// connection has room for, and returns the one that is the answer.
func (s *Server) pushed(ctx context.Context, peer string, who reading.Asker, req *pb.ListRequest) (*pb.ListResponse, error) {
	total, most := 0, min(int(req.PushBytes), maxPush)
	for number := uint32(0); ; number++ {
		page, err := s.reading.List(ctx, who, req)
		if number > 0 && (err != nil || page.Refusal != nil) {
			return &pb.ListResponse{More: true, Pushed: number}, nil // asked on, it says why
		}
		if err != nil || page.Refusal != nil {
			return page, err
		}
		if page.Pushed = number; !page.More || len(page.Entries) == 0 || req.Stream == 0 || total >= most || ctx.Err() != nil {
			return page, nil
		}
		payload := binary.LittleEndian.AppendUint64(make([]byte, 0, 12+proto.Size(page)), req.Stream)
		payload, err = proto.MarshalOptions{}.MarshalAppend(binary.LittleEndian.AppendUint32(payload, number), page)
		if err != nil || s.host.Send(peer, wire.Operation, method.Page, payload) != nil {
			return page, nil
		}
		total += len(payload)
		req.After = page.Entries[len(page.Entries)-1].Name
	}
}
