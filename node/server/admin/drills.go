package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drill"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/wire"
)

// Drill has the node take part in a drill, for administrators. It answers when that is
// over. With check it only says whether the node would.
func (s *Orders) Drill(ctx context.Context, w *identity.Who, req *pb.DrillRequest) (proto.Message, error) {
	const op fault.Op = "admin.Drill"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	p := drill.Plan{ID: req.Id, Kind: drill.Kind(req.Kind), Node: ids.Node(req.Node), Site: ids.Site(req.Site), For: time.Duration(req.ForNs)}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.For > s.FailedAfter/2 {
		return nil, fault.Errorf(fault.Invalid, op, p.ID, "after failed_after (%v) other nodes would take a silent one's place for good: let the drill last half of that at most", s.FailedAfter)
	}
	if err := s.Stage.Busy(); err != nil {
		return nil, err
	}
	if req.Check {
		return &pb.DrillResponse{}, nil
	}
	detail := fmt.Sprintf("%s %s for %v, as %s", p.Kind, string(p.Node)+string(p.Site), p.For, p.ID)
	if err := s.record(ctx, w, "node.drill", geoconfig.Node{ID: s.Self}.Key().String(), detail); err != nil {
		return nil, err
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	lasted, whole, err := s.Stage.Run(ctx, p, w.Client)
	if err != nil {
		return nil, err
	}
	return &pb.DrillResponse{LastedNs: int64(lasted), Whole: whole}, nil
}

// Drills lists the drills that are over. Administrators may add one before.
func (s *Orders) Drills(ctx context.Context, w *identity.Who, req *pb.DrillsRequest) (proto.Message, error) {
	const op fault.Op = "admin.Drills"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	if len(req.Add) > 0 {
		var r drill.Record
		if err := json.Unmarshal(req.Add, &r); err != nil {
			return nil, fault.Wrap(fault.Invalid, op, "add", err)
		}
		r.By = string(w.User) // whatever the commander says
		if err := drill.Add(ctx, s.History, s.Key, r); err != nil {
			return nil, err
		}
	}
	list, err := drill.Read(ctx, s.History)
	if err != nil {
		return nil, err
	}
	out := &pb.DrillsResponse{}
	for i := range list {
		body, err := json.Marshal(list[i])
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, op, list[i].ID, err)
		}
		out.Drills = append(out.Drills, body)
	}
	return out, nil
}
