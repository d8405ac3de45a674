package transfer

import (
	"context"
	"slices"
	"sync"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// PutChunks implements content.Remote. To a member of another site chunks go in
// pieces, at the same time: it passes the first ones on while the last ones still
// travel.
func (s *Service) PutChunks(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	if timeouts.Eventual(ctx) {
		return s.putEventually(ctx, o, addresses, sizes, body)
	}
	return s.putChunks(ctx, o, addresses, sizes, body)
}

func (s *Service) putChunks(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	pieces := chunk.Pieces(sizes)
	if len(pieces) < 2 || !s.isFar(o.Slice()) {
		return s.putPiece(ctx, o, addresses, sizes, body)
	}
	errs := make([]error, len(pieces))
	var group sync.WaitGroup
	for i, p := range pieces {
		group.Go(func() {
			errs[i] = s.putPiece(ctx, o, addresses[p.First:][:p.Chunks], sizes[p.First:][:p.Chunks], part(body, p.At, p.Bytes))
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// isFar reports whether the member of a slice that takes chunks first stands at
// another site, and not on this machine.
func (s *Service) isFar(slice ids.Slice) bool {
	row, ok := s.router.Known(slice)
	if !ok {
		return false
	}
	nodes := s.chain(row)
	if len(nodes) == 0 {
		return false
	}
	first := nodes[0]
	return !s.cluster.Near(first) && s.cluster.Distance(first).How != contact.Local
}

// part returns so many bytes of a body from at on.
func part(body [][]byte, at, n int) (out [][]byte) {
	for _, b := range body {
		if at >= len(b) {
			at -= len(b)
			continue
		}
		if n == 0 {
			break
		}
		b = b[at:min(len(b), at+n)]
		at, n = 0, n-len(b)
		out = append(out, b)
	}
	return out
}

// putNear sends chunks to the nearest normal member, which passes them on while
// it takes them, and reports whether they are at the active too.
func (s *Service) putNear(ctx context.Context, row geoconfig.SliceRow, addresses []chunk.Address, sizes []uint32, body [][]byte) bool {
	nodes := s.chain(row)
	if len(nodes) == 0 || nodes[0] == row.Active {
		return false
	}
	req := &pb.PutRequest{Slice: uint32(row.ID), Addresses: join(addresses), Sizes: sizes, Client: s.cluster.Client()}
	for _, n := range nodes[1:] {
		req.Chain = append(req.Chain, string(n))
	}
	resp := &pb.PutResponse{}
	buffer, err := s.cluster.Call(ctx, nodes[0], wire.Chunk, method.Put, req, body, resp)
	buffer.Release()
	if err == nil {
		s.tickets.Own(addresses, resp.Owned)
	}
	arrived := err == nil && slices.Contains(resp.Stored, string(row.Active))
	if !arrived {
		s.chains.forget(row.ID)
	}
	return arrived
}

// putPiece sends chunks in one request: the nearest member takes them and passes
// them on along the chain of the other normal ones; where that does not bring
// them to the active, the active takes them itself.
func (s *Service) putPiece(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	if row, ok := s.router.Known(o.Slice()); ok && s.putNear(ctx, row, addresses, sizes, body) {
		return nil
	}
	return s.router.Active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		req := &pb.PutRequest{Slice: uint32(o.Slice()), Addresses: join(addresses), Sizes: sizes, Client: s.cluster.Client()}
		if row, ok := s.router.Known(o.Slice()); ok {
			for _, n := range s.chain(row) {
				if n != node {
					req.Chain = append(req.Chain, string(n))
				}
			}
		}
		resp := &pb.PutResponse{}
		buffer, err := s.cluster.Call(ctx, node, wire.Chunk, method.Put, req, body, resp)
		buffer.Release()
		s.tickets.Own(addresses, resp.Owned)
		return resp.Refusal, err
	})
}
