package admin

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/tree"
)

// Where tells where an object is, from this node's copy.
func (s *Reports) Where(ctx context.Context, w *identity.Who, req *pb.WhereRequest) (proto.Message, error) {
	const op fault.Op = "admin.Where"
	o := ids.Object(req.Object)
	row, ok := s.o.Roster.Slice(o.Slice())
	if !ok {
		return nil, fault.E(fault.NotFound, op, o.String(), "this node knows no such slice")
	}
	p := s.o.Loop.Published(o.Slice())
	_, member := row.Member(s.o.Self)
	if !member || p == nil {
		return nil, fault.Errorf(fault.NotActive, op, o.String(), "this node has no copy; ask %s", row.Active)
	}
	if err := s.o.Reached(ctx, w, o, req.Ticket); err != nil {
		return nil, err
	}
	attr, err := tree.GetAttr(s.o.Committed(o.Slice()), o, false, false)
	if err != nil {
		return nil, err
	}
	out := status.Where{Object: o, Slice: row.ID, Epoch: row.Epoch, Policy: row.Policy, Read: s.o.Self,
		Version: attr.Version, Change: attr.Change, Size: attr.Size}
	for _, c := range cue.Kept(attr.Cues) {
		out.Cues = append(out.Cues, c.String())
	}
	if members := s.members(row); len(members) > 0 {
		out.Active, out.Others = members[0], members[1:]
	}
	if p.Serves(s.o.Clock()) {
		out.Why = "this node is the slice's active: it alone knows the current version"
	} else {
		out.Why = "this node was asked and has a copy; the active may know a newer version"
	}
	encoded, err := json.Marshal(out)
	return &pb.WhereResponse{Where: encoded}, fault.Wrap(fault.Corrupt, op, "", err)
}
