package admin

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/wire"
)

// Snapshots lists the named snapshots. Whoever may ask the node may know them: their names
// stand in paths.
func (s *Orders) Snapshots(context.Context, *identity.Who, *pb.SnapshotsRequest) (proto.Message, error) {
	list, age := s.List.All()
	out := &pb.SnapshotsResponse{AgeNs: int64(age)}
	for i := range list {
		out.Snapshots = append(out.Snapshots, snapshotView(&list[i]))
	}
	return out, nil
}

func snapshotView(s *named.Snapshot) *pb.Snapshot {
	return &pb.Snapshot{Name: s.Name, Hlc: uint64(s.Time), By: s.By, ExpiresNs: s.ExpiresNS}
}

// Snapshot makes or deletes a snapshot, for administrators.
func (s *Orders) Snapshot(ctx context.Context, w *identity.Who, req *pb.SnapshotRequest) (proto.Message, error) {
	const op fault.Op = "admin.Snapshot"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	if (req.Make == "") == (req.Delete == "") {
		return nil, fault.E(fault.Invalid, op, "", "either a name to make or one to delete is needed")
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	var made named.Snapshot
	if req.Make != "" {
		made, err = s.List.Make(ctx, string(w.User), req.Make, time.Duration(req.KeepNs), req.DryRun)
	} else {
		made, err = s.List.Delete(ctx, string(w.User), req.Delete, req.DryRun)
	}
	if err != nil {
		return nil, err
	}
	return &pb.SnapshotResponse{Snapshot: snapshotView(&made)}, nil
}
