package chunks

import (
	"context"
	"crypto/subtle"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/pack"
)

// maxProofs bounds the chunks that one request may prove to have: each is read.
const maxProofs = 1024

// Proved is Have for users: a chunk is missing unless the request proves that
// the user has its bytes, so that a hash alone says nothing about what is here,
// and pins nothing: once too many chunks are pinned, all are.
func (s *Server) Proved(ctx context.Context, req *pb.HaveRequest, nonce [32]byte) (*pb.HaveResponse, error) {
	const op fault.Op = "chunks.Proved"
	addresses, err := addressesOf(op, req.Addresses)
	if err != nil {
		return nil, err
	}
	missing := make([]byte, (len(addresses)+7)/8)
	for i := range missing {
		missing[i] = 0xff
	}
	if len(req.Proofs) != len(addresses)*chunk.ProofSize || len(addresses) > maxProofs {
		return &pb.HaveResponse{Missing: missing}, nil
	}
	for i := range addresses {
		length, ok := s.Packs.Length(addresses[i])
		if !ok {
			continue
		}
		body, done := s.buffer(length)
		err := s.Packs.Read(ctx, []pack.Range{{Address: addresses[i], Into: body}})
		proof := chunk.Prove(nonce, body)
		done()
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, addresses[i].String(), err)
		}
		proved := subtle.ConstantTimeCompare(proof[:], req.Proofs[i*chunk.ProofSize:(i+1)*chunk.ProofSize]) == 1
		if proved && s.Packs.Has(addresses[i : i+1])[0] {
			missing[i/8] &^= 1 << (i % 8)
		}
	}
	return &pb.HaveResponse{Missing: missing}, nil
}

// leadWindow is so much of a file whose extents are looked at together.
const leadWindow = 8 << 20

// LeadsTo refuses a request for chunks to which its manifest does not lead: each
// part says where in the file its chunk is. The manifest is read from nodes.
func LeadsTo(nodes chunk.Reader, req *pb.GetRequest) error {
	const op fault.Op = "chunks.LeadsTo"
	addresses, err := addressesOf(op, req.Addresses)
	if err != nil {
		return err
	}
	root, err := chunk.AddressOf(req.Root)
	if err != nil || len(req.Parts) != len(addresses) {
		return fault.E(fault.Invalid, op, "", "the request does not say where in which file its chunks are")
	}
	r, err := rootOf(nodes, root, req.Height)
	if err != nil {
		return err
	}
	var known []chunk.Extent
	for i := range addresses {
		at := req.Parts[i].At
		for len(known) > 0 && known[0].End() <= at {
			known = known[1:]
		}
		if len(known) == 0 || at < known[0].Offset {
			if known, err = chunk.Extents(nodes, r, at, leadWindow, maxExtents); err != nil {
				return fault.Wrap(fault.IO, op, root.String(), err)
			}
		}
		if len(known) == 0 || known[0].Chunk != addresses[i] {
			return fault.E(fault.Permission, op, addresses[i].String(), "the version of the file has no such chunk there")
		}
	}
	return nil
}
