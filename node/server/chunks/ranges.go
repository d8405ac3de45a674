package chunks

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/pack"
)

// maxExtents bounds the extents of one answer; the caller asks for the rest.
const maxExtents = 8192

// Range finds the extents of a byte range of one version and reads its bytes,
// holes as zeros, as many as the limits allow. done gives the body's memory
// back; it is nil where there is no body.
func (s *Server) Range(ctx context.Context, req *pb.RangeRequest, room Room) (answer *pb.RangeResponse, body []byte, done func(), err error) {
	const op fault.Op = "chunks.Range"
	address, err := chunk.AddressOf(req.Root)
	if err != nil {
		return nil, nil, nil, fault.Wrap(fault.Invalid, op, "", err)
	}
	length := req.Length
	limit := uint64(maxAnswer)
	if req.DataLimit > 0 {
		limit = min(limit, req.DataLimit)
	}
	if req.Data {
		length = min(length, limit)
	}
	root, err := rootOf(s.Nodes, address, req.Height)
	if err != nil {
		return nil, nil, nil, err
	}
	extents, err := chunk.Extents(s.Nodes, root, req.Offset, length, maxExtents)
	if err != nil {
		return nil, nil, nil, fault.Wrap(fault.IO, op, address.String(), err)
	}
	answer = &pb.RangeResponse{Extents: chunk.AppendExtents(nil, extents)}
	if !req.Data || len(extents) == 0 {
		return answer, nil, nil, nil
	}
	n := int(extents[len(extents)-1].End() - req.Offset)
	if err := room.wait(ctx, n); err != nil {
		return nil, nil, nil, err
	}
	body, done = s.buffer(n)
	if err := s.fill(ctx, body, extents, req.Offset); err != nil {
		done()
		return nil, nil, nil, fault.Wrap(fault.IO, op, address.String(), err)
	}
	answer.DataLength = uint64(n)
	return answer, body, done, nil
}

// rootOf completes a root: the manifest itself says how long the file is.
func rootOf(nodes chunk.Reader, a chunk.Address, height uint32) (chunk.Root, error) {
	const op fault.Op = "chunks.rootOf"
	data, err := nodes.Node(a)
	if err != nil {
		return chunk.Root{}, fault.Wrap(fault.IO, op, a.String(), err)
	}
	size, stored, err := chunk.Lengths(data)
	if err != nil || height > 16 {
		return chunk.Root{}, fault.Wrap(fault.Corrupt, op, a.String(), err)
	}
	return chunk.Root{Address: a, Height: uint8(height), Size: size, Stored: stored}, nil
}

// fill reads the extents, which are contiguous from base on, into body.
func (s *Server) fill(ctx context.Context, body []byte, extents []chunk.Extent, base uint64) error {
	return s.Packs.Read(ctx, place(make([]pack.Range, 0, len(extents)), body, extents, base))
}

// place adds what is to be read for extents, which are contiguous from base on,
// into body, and clears its holes.
func place(ranges []pack.Range, body []byte, extents []chunk.Extent, base uint64) []pack.Range {
	for i := range extents {
		e := &extents[i]
		into := body[e.Offset-base : e.End()-base : e.End()-base]
		if e.IsHole() {
			clear(into)
			continue
		}
		ranges = append(ranges, pack.Range{Address: e.Chunk, Offset: int(e.ChunkOffset), Into: into})
	}
	return ranges
}

// Files reads small files whole, end to end. Where that would take more than
// most bytes, the later ones are left out: sizes says how long each is in the
// body, 0 where it is left out. done gives the body's memory back; it is nil
// where there is no body.
func (s *Server) Files(ctx context.Context, roots []chunk.Root, most int, room Room) (body []byte, sizes []uint32, done func(), err error) {
	const op fault.Op = "chunks.Files"
	sizes = make([]uint32, len(roots))
	total := 0
	for i, r := range roots {
		if r.Address.IsZero() || r.Size > uint64(min(most, maxAnswer)-total) {
			continue
		}
		sizes[i] = uint32(r.Size)
		total += int(r.Size)
	}
	if total == 0 {
		return nil, sizes, nil, nil
	}
	if err := room.wait(ctx, total); err != nil {
		return nil, nil, nil, err
	}
	body, done = s.buffer(total)
	var ranges []pack.Range
	at := 0
	for i, r := range roots {
		if sizes[i] == 0 {
			continue
		}
		into := body[at : at+int(sizes[i])]
		at += len(into)
		extents, err := chunk.Extents(s.Nodes, r, 0, r.Size, maxExtents)
		if err == nil && (len(extents) == 0 || extents[len(extents)-1].End() != r.Size) {
			err = fault.E(fault.TooLarge, op, "", "the file is in too many pieces")
		}
		if err != nil {
			done()
			return nil, nil, nil, fault.Wrap(fault.IO, op, r.Address.String(), err)
		}
		ranges = place(ranges, into, extents, 0)
	}
	if err := s.Packs.Read(ctx, ranges); err != nil {
		done()
		return nil, nil, nil, fault.Wrap(fault.IO, op, "", err)
	}
	return body, sizes, done, nil
}
