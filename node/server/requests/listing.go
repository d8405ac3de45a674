package requests

import (
	"context"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/access"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/wire"
)

// maxPush bounds what one List call may have pushed; the caller asks on.
const maxPush = 16 << 20

// Listing answers List calls. Every field is needed, and none changes.
type Listing struct {
	Access *access.Control
	// Page reads one page of a directory.
	Page func(context.Context, reading.Asker, *pb.ListRequest) (*pb.ListResponse, error)
	// Send sends a peer a message, and fails where the connection has no room.
	Send func(peer string, class wire.Class, m wire.Method, payload ...[]byte) error
}

// List answers a List call. Where the caller takes a stream, the pages before
// the last go out as they are read, so that a listing of any size costs one
// round trip.
func (l *Listing) List(ctx context.Context, r *wire.Request) {
	var req pb.ListRequest
	w, ok := admit(l.Access, r, &req)
	if !ok {
		return
	}
	answer, err := l.push(ctx, r.Peer, l.Access.Asker(w, req.Header), &req)
	reply(r, answer, err)
}

// push pushes pages until the last, or as many as the caller takes or the
// connection has room for, and returns the page that is the answer.
func (l *Listing) push(ctx context.Context, peer string, who reading.Asker, req *pb.ListRequest) (*pb.ListResponse, error) {
	total, most := 0, min(int(req.PushBytes), maxPush)
	for number := uint32(0); ; number++ {
		page, err := l.Page(ctx, who, req)
		if number > 0 && (err != nil || page.Refusal != nil) {
			return &pb.ListResponse{More: true, Pushed: number}, nil // the next call says why
		}
		if err != nil || page.Refusal != nil {
			return page, err
		}
		if page.Pushed = number; !page.More || len(page.Entries) == 0 || req.Stream == 0 || total >= most || ctx.Err() != nil {
			return page, nil
		}
		payload := binary.LittleEndian.AppendUint64(make([]byte, 0, 12+proto.Size(page)), req.Stream)
		payload, err = proto.MarshalOptions{}.MarshalAppend(binary.LittleEndian.AppendUint32(payload, number), page)
		if err != nil || l.Send(peer, wire.Operation, method.Page, payload) != nil {
			return page, nil
		}
		total += len(payload)
		req.After = page.Entries[len(page.Entries)-1].Name
	}
}
