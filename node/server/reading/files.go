package reading

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// Files reads regular files of one slice with their content, as far as that is
// in their records, each under a lease of its own, as GetAttr does one by one.
// It waits for nobody: a file that is about to change is left out, as is what
// is none, and what a user shows no ticket for or may not read.
func (s *Server) Files(_ context.Context, who Asker, req *pb.FilesRequest) (*pb.FilesResponse, error) {
	const op fault.Op = "reading.Files"
	h := header(req.Header)
	slice := ids.Slice(h.Slice)
	if len(req.Objects) > maxNames {
		return nil, fault.Errorf(fault.TooLarge, op, "", "%d files in one request", len(req.Objects))
	}
	p, refused := s.admit(slice, &Asker{}, h.Epoch)
	if refused != nil {
		return &pb.FilesResponse{Refusal: refused}, nil
	}
	out := &pb.FilesResponse{}
	v := s.Committed(slice)
	for i, id := range req.Objects {
		o := ids.Object(id)
		var shown []byte
		if i < len(req.Tickets) {
			shown = req.Tickets[i]
		}
		if o.Slice() != slice || !s.HasReached(&who, o, shown) {
			continue
		}
		grants := s.grant(out.Grants, who, p, o, pb.Grant_FILE) // before it is read
		attr, err := tree.GetAttr(v, o, true, false)
		if err != nil || attr.Mode&tree.TypeMask != tree.TypeRegular {
			continue
		}
		s.Stamp(&who, attr, chunk.Address{})
		if withhold(&who, attr); attr.Content.GetWithheld() {
			continue
		}
		out.Grants = grants
		out.Files = append(out.Files, &pb.FilesResponse_File{Attr: attr})
	}
	if !s.still(slice) {
		return &pb.FilesResponse{Refusal: s.refusal(slice, p, fault.NotActive, "the lease has lapsed")}, nil
	}
	out.Hlc = uint64(s.HLC.Last())
	return out, nil
}
