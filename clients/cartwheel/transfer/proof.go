package transfer

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// A node tells a user that it has a chunk only where the user proves to have its
// bytes, and answers with a ticket for each such chunk. A trusted host proves
// nothing.

// haveAtActive asks the active of a slice which chunks it lacks.
func (s *Service) haveAtActive(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) ([]bool, error) {
	req := &pb.HaveRequest{Slice: uint32(o.Slice()), Addresses: join(addresses), Client: s.cluster.Client()}
	var resp *pb.HaveResponse
	err := s.router.Active(ctx, o.Slice(), func(ctx context.Context, node ids.Node, _ ids.Epoch) (*pb.Refusal, error) {
		if s.tickets.IsUser() {
			nonce, err := s.cluster.Nonce(ctx, node)
			if err == nil {
				req.Proofs, err = proofs(nonce, sizes, body)
			}
			if err != nil {
				return nil, err
			}
		}
		resp = &pb.HaveResponse{}
		buffer, err := s.cluster.Call(ctx, node, wire.Operation, method.Have, req, nil, resp)
		buffer.Release()
		return resp.Refusal, err
	})
	if err != nil {
		return nil, err
	}
	s.tickets.Own(addresses, resp.Owned)
	missing := make([]bool, len(addresses))
	for i := range missing {
		missing[i] = i/8 >= len(resp.Missing) || resp.Missing[i/8]&(1<<(i%8)) != 0
	}
	return missing, nil
}

// proofs proves the possession of chunks, which lie in the parts of body end to
// end, with a node's nonce. Without a nonce it proves nothing.
func proofs(nonce []byte, sizes []uint32, body [][]byte) ([]byte, error) {
	if len(nonce) != chunk.ProofSize {
		return nil, nil
	}
	out := make([]byte, 0, len(sizes)*chunk.ProofSize)
	var parts [][]byte // of one chunk
	i, at := 0, 0      // what comes next: body[i][at:]
	for _, size := range sizes {
		parts = parts[:0]
		for rest := int(size); rest > 0; {
			if i == len(body) {
				return nil, fault.E(fault.Invalid, "cartwheel.proofs", "", "the body is shorter than its chunks")
			}
			n := min(rest, len(body[i])-at)
			parts = append(parts, body[i][at:at+n])
			rest -= n
			if at += n; at == len(body[i]) {
				i, at = i+1, 0
			}
		}
		proof := chunk.Prove([32]byte(nonce), parts...)
		out = append(out, proof[:]...)
	}
	return out, nil
}
