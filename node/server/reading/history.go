package reading

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

// maxVersions bounds the versions of one answer.
const maxVersions = 1024

// History lists the versions that are retained of a name or of an object. Rights are
// those as of the caller's time, or of now: to see an object's takes a way to it, and a
// name's a directory that may be read and searched.
func (s *Server) History(ctx context.Context, who Asker, req *pb.HistoryRequest) (*pb.HistoryResponse, error) {
	h, o := header(req.Header), ids.Object(req.Object)
	if err := s.Reached(ctx, &who, o, h.Ticket); err != nil {
		return nil, err
	}
	var out *pb.HistoryResponse
	err := again(ctx, func() error {
		p, refused := s.admit(o.Slice(), &who, h.Epoch)
		if refused != nil {
			out = &pb.HistoryResponse{Refusal: refused}
			return nil
		}
		out = &pb.HistoryResponse{}
		return s.asOf(ctx, &who, p.Slice, func() error {
			if len(req.Name) == 0 {
				return s.recordHistory(out, o)
			}
			if _, err := tree.Directory(s.seen(&who, p, p.Slice), o, &who.Principal, 4|1); err != nil {
				return err
			}
			return s.nameHistory(out, o, req.Name)
		})
	})
	if err != nil {
		return nil, err
	}
	if out.Refusal == nil {
		since, _, err := tree.WholeSince(s.Committed(o.Slice()))
		if err != nil {
			return nil, err
		}
		out.Since = uint64(since)
		if !s.still(o.Slice()) {
			return &pb.HistoryResponse{Refusal: s.refusal(o.Slice(), nil, fault.NotActive, "the lease has lapsed")}, nil
		}
	}
	return out, nil
}

// nameHistory fills in what a name meant.
func (s *Server) nameHistory(out *pb.HistoryResponse, dir ids.Object, name []byte) error {
	if len(name) > tree.MaxName {
		return fault.E(fault.NameTooLong, "reading.History", "", "")
	}
	since, _, err := tree.WholeSince(s.Committed(dir.Slice()))
	if err != nil {
		return err
	}
	list, more, err := tree.EntryHistory(s.Past.Versions(dir.Slice()), dir, name, since, maxVersions)
	out.More = more
	for _, x := range list {
		out.Versions = append(out.Versions, &pb.HistoryResponse_Version{Hlc: uint64(x.Time), Object: uint64(x.Object), Mode: x.Type})
	}
	return err
}

// recordHistory fills in what an object's record was.
func (s *Server) recordHistory(out *pb.HistoryResponse, o ids.Object) error {
	since, _, err := tree.WholeSince(s.Committed(o.Slice()))
	if err != nil {
		return err
	}
	list, more, err := tree.RecordHistory(s.Past.Versions(o.Slice()), o, since, maxVersions)
	out.More = more
	for _, x := range list {
		v := &pb.HistoryResponse_Version{Hlc: uint64(x.Time)}
		if n := x.Inode; n != nil {
			v.Object, v.Mode, v.Size, v.Version = uint64(o), n.Mode, n.Size, n.Version
		}
		out.Versions = append(out.Versions, v)
	}
	return err
}
