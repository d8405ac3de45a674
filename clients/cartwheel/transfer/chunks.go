package transfer

import (
	"context"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

func join(addresses []chunk.Address) []byte {
	out := make([]byte, 0, len(addresses)*chunk.AddressSize)
	for i := range addresses {
		out = append(out, addresses[i][:]...)
	}
	return out
}

// GetChunks implements content.Remote.
func (s *Service) GetChunks(ctx context.Context, o ids.Object, parts []content.Part, try int) ([]byte, error) {
	readable := s.tickets.Readable(ctx, o, parts[0].Root.Address)
	switch {
	case try > 0:
		req, size := s.getRequest(o, parts, readable)
		return s.getElsewhere(ctx, o, req, size, try)
	case parts[0].Shared:
		return s.getShared(ctx, o, parts, readable)
	}
	return s.getNear(ctx, o, parts, readable)
}

// getNear asks the nearest member of the slice.
func (s *Service) getNear(ctx context.Context, o ids.Object, parts []content.Part, readable []byte) ([]byte, error) {
	req, size := s.getRequest(o, parts, readable)
	var resp *pb.GetResponse
	body, err := s.immutable(ctx, o.Slice(), wire.Chunk, method.Get, req, func() response { resp = &pb.GetResponse{}; return resp },
		func(body []byte) bool { return len(body) == size })
	if err != nil {
		return nil, err
	}
	if len(body) != size {
		return nil, fault.Errorf(fault.Missing, getOp, o.String(), "%d bytes of %d came", len(body), size)
	}
	return body, nil
}

// getElsewhere asks one member of the slice for chunks that came damaged: the
// active first, which has most to lose, then the others.
func (s *Service) getElsewhere(ctx context.Context, o ids.Object, req *pb.GetRequest, size, try int) ([]byte, error) {
	row, err := s.router.Row(ctx, o.Slice())
	if err != nil {
		return nil, err
	}
	nodes := []ids.Node{row.Active}
	for _, n := range row.Normals() {
		if n != row.Active {
			nodes = append(nodes, n)
		}
	}
	node := nodes[(try-1)%len(nodes)]
	short, cancel := wire.Patient(ctx, s.cluster.Host(), string(node), wire.Chunk, replicaStall, contentMost)
	defer cancel()
	resp := &pb.GetResponse{}
	buffer, err := s.cluster.Call(short, node, wire.Chunk, method.Get, req, nil, resp)
	switch {
	case err != nil:
		return nil, err
	case resp.Refusal != nil || len(buffer.Bytes()) != size:
		return nil, fault.E(fault.Missing, getOp, o.String(), "this member does not have it")
	}
	return buffer.Bytes(), nil
}

// getRequest returns a request for parts of a version of a file, and how many bytes
// they are. Only users say which version that is.
func (s *Service) getRequest(o ids.Object, parts []content.Part, readable []byte) (req *pb.GetRequest, size int) {
	req = &pb.GetRequest{Slice: uint32(o.Slice()), Addresses: make([]byte, 0, len(parts)*chunk.AddressSize)}
	if root := parts[0].Root; readable != nil {
		req.Object, req.Root, req.Height, req.Readable = uint64(o), root.Address[:], uint32(root.Height), readable
	}
	for i := range parts {
		req.Addresses = append(req.Addresses, parts[i].Address[:]...)
		req.Parts = append(req.Parts, &pb.GetRequest_Part{Offset: parts[i].Offset, Length: parts[i].Length, At: parts[i].At})
		size += int(parts[i].Length)
	}
	return req, size
}

// startLimit is for how long nothing may come of a request that no goroutine waits
// for: about how long the active may take before it is suspected. A reader that
// waits asks again then.
const startLimit = time.Second

// StartGet implements content.Starter: it asks the nearest member, once.
func (s *Service) StartGet(o ids.Object, part content.Part, of *trace.Operation, then func(data []byte, ok bool)) bool {
	row, known := s.router.Known(o.Slice())
	if !known {
		return false
	}
	var shown []byte
	if s.tickets.IsUser() {
		if shown = s.tickets.Of(o).Version(part.Root.Address); shown == nil {
			return false // a reader that waits gets one
		}
	}
	req, _ := s.getRequest(o, []content.Part{part}, shown)
	resp := &pb.GetResponse{}
	return s.cluster.Start(s.cluster.Closest(row.Active, row.Normals()), wire.Chunk, method.Get, req, resp, startLimit, of, func(body []byte, err error) {
		whole := part.Offset == 0 && part.Length == part.Size
		if err != nil || resp.Refusal != nil || len(body) != int(part.Length) || whole && chunk.Verify(part.Address, body) != nil {
			then(nil, false)
			return
		}
		then(body, true)
	})
}
