package admin

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/named"
	"cartwheel.dev/node/wire"
)

// Snapshots lists the named snapshots and the schedules. Whoever may ask the node may know them: their names
// stand in paths.
func (s *Orders) Snapshots(context.Context, *identity.Who, *pb.SnapshotsRequest) (proto.Message, error) {
	list, age := s.List.All()
	out := &pb.SnapshotsResponse{AgeNs: int64(age)}
	for i := range list {
		out.Snapshots = append(out.Snapshots, snapshotView(&list[i]))
	}
	for _, x := range s.List.Schedules() {
		out.Schedules = append(out.Schedules, &pb.Schedule{Name: x.Name, By: x.By, EveryNs: int64(x.Every), KeepNs: int64(x.Keep)})
	}
	return out, nil
}

func snapshotView(s *named.Snapshot) *pb.Snapshot {
	return &pb.Snapshot{Name: s.Name, Hlc: uint64(s.Time), By: s.By, ExpiresNs: s.ExpiresNS, Path: s.Path, Root: uint64(s.Root)}
}

// Snapshot makes or deletes a snapshot or a schedule, for administrators.
func (s *Orders) Snapshot(ctx context.Context, w *identity.Who, req *pb.SnapshotRequest) (proto.Message, error) {
	const op fault.Op = "admin.Snapshot"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	given := 0
	for _, name := range []string{req.Make, req.Schedule, req.Delete} {
		if name != "" {
			given++
		}
	}
	if given != 1 {
		return nil, fault.E(fault.Invalid, op, "", "one name is needed: of what to make, to schedule or to delete")
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return nil, err
	}
	defer resume()
	var made named.Snapshot
	switch {
	case req.Schedule != "":
		made = named.Snapshot{Name: req.Schedule, By: string(w.User)}
		err = s.List.MakeSchedule(ctx, named.Schedule{Name: req.Schedule, By: made.By, Every: time.Duration(req.EveryNs), Keep: time.Duration(req.KeepNs)}, req.DryRun)
	case req.Make != "":
		made = named.Snapshot{Name: req.Make, By: string(w.User), Path: req.Path, Root: ids.Object(req.Root)}
		made, err = s.List.Make(ctx, made, time.Duration(req.KeepNs), req.DryRun)
	default:
		made, err = s.List.Delete(ctx, string(w.User), req.Delete, req.DryRun)
	}
	if err != nil {
		return nil, err
	}
	return &pb.SnapshotResponse{Snapshot: snapshotView(&made)}, nil
}
