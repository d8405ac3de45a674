package reads

import (
	"context"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/server/named"
)

// past reads the list anew, and says how old it is where that fails. Errors: those of the
// store where the node knows no list.
func (s *Reads) past(ctx context.Context) ([]named.Snapshot, view.Freshness, error) {
	f := s.Fresh()
	if s.o.Past == nil {
		return nil, f, fault.E(fault.NotSupported, "reads.past", "nodes/"+string(s.o.Self), "this node keeps no list of snapshots: ask another node")
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	err := s.o.Past.Refresh(ctx)
	all, age := s.o.Past.All()
	switch {
	case err == nil:
		return all, f, nil
	case age < 0 && len(all) == 0:
		return nil, f, err
	}
	f.GeoConfig.Reachable = false
	if age >= 0 {
		f.AsOfAt = s.o.Wall().Add(-age)
	}
	return all, f, nil
}

// ListSnapshots lists the named snapshots, the newest first. While the store is away, it
// lists those that the node knows. Errors: those of the store where it knows no list.
func (s *Reads) ListSnapshots(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Snapshot]], error) {
	all, f, err := s.past(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]view.Snapshot, 0, len(all))
	for i := range slices.Backward(all) {
		out = append(out, view.OfSnapshot(&all[i]))
	}
	return view.ListOf(out, f), nil
}

// ListSchedules lists the schedules by name. Errors: as ListSnapshots.
func (s *Reads) ListSchedules(ctx context.Context, _ *view.None) (*view.Answer[view.List[view.Schedule]], error) {
	_, f, err := s.past(ctx)
	if err != nil {
		return nil, err
	}
	list := s.o.Past.Schedules()
	out := make([]view.Schedule, 0, len(list))
	for i := range list {
		out = append(out, view.OfSchedule(&list[i], s.o.Wall()))
	}
	return view.ListOf(out, f), nil
}
