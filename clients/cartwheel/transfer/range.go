package transfer

import (
	"context"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// smallRange is up to what size a range travels beside operations.
const smallRange = 64 << 10

// Range implements content.Remote. A node answers at most so many bytes at
// once; the rest is asked for.
func (s *Service) Range(ctx context.Context, o ids.Object, q content.Query) (content.Answer, error) {
	var out content.Answer
	class := wire.Chunk
	if !q.Data || q.Length <= smallRange {
		class = wire.Operation
	}
	readable := s.tickets.Readable(ctx, o, q.Root.Address)
	for done := uint64(0); ; {
		var resp *pb.RangeResponse
		req := &pb.RangeRequest{Slice: uint32(o.Slice()), Root: q.Root.Address[:], Height: uint32(q.Root.Height), Offset: q.Offset + done, Length: q.Length - done, Data: q.Data,
			Readable: readable}
		if readable != nil {
			req.Object = uint64(o)
		}
		body, err := s.immutable(ctx, o.Slice(), class, method.Range, req, func() response { resp = &pb.RangeResponse{}; return resp },
			func(body []byte) bool { return !q.Data || len(body) > 0 || q.Length == done })
		if err != nil {
			return out, err
		}
		if done == 0 {
			out.Extents = resp.Extents
		} else if q.Extents {
			out.Extents = append(out.Extents, resp.Extents...)
		}
		if !q.Data {
			return out, nil
		}
		if len(body) == 0 && done < q.Length {
			return out, fault.Errorf(fault.Corrupt, rangeOp, o.String(), "%d bytes of %d came", done, q.Length)
		}
		if done == 0 {
			out.Data = body
		} else {
			out.Data = append(out.Data, body...)
		}
		if done += uint64(len(body)); done >= q.Length {
			return out, nil
		}
	}
}
