package api

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/reads"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/geo/changes"
	snapshots "cartwheel.dev/node/server/named"
)

// Past makes and deletes snapshots and schedules, as package named has it. The contexts
// carry its Order.
type Past interface {
	reads.Past
	Make(ctx context.Context, s snapshots.Snapshot, keep time.Duration, dryRun bool) (snapshots.Snapshot, error)
	MakeSchedule(ctx context.Context, s snapshots.Schedule, dryRun bool) error
	Delete(ctx context.Context, by, name string, dryRun bool) (snapshots.Snapshot, error)
}

// pastRoutes change snapshots and schedules.
type pastRoutes struct{ o *Options }

// order is the order of a change of snapshots or schedules, with the context that carries
// it. A node may make the change by itself, as its schedules do.
func (p pastRoutes) order(ctx context.Context, h *ChangeHeaders, words any) (context.Context, changes.Order, error) {
	if p.o.Past == nil {
		return ctx, changes.Order{}, fault.E(fault.NotSupported, "api.order", "nodes/"+string(p.o.Self), "this node keeps no list of snapshots: ask another node")
	}
	o, err := h.nodeOrder(ctx, p.o.Wall(), words)
	return snapshots.With(ctx, snapshots.Order{Key: o.Key, From: o.From}), o, err
}

// isApplied reports whether an order's action on a name was done before. A request without a
// key of its own is never a repetition. Errors: those of the store.
func (p pastRoutes) isApplied(ctx context.Context, h *ChangeHeaders, o changes.Order, action, name string) (bool, error) {
	if h.IdempotencyKey == "" {
		return false, nil
	}
	// No row has revision 1 to match: a batch that is not known is refused.
	b := geoconfig.Batch{Key: snapshots.Order{Key: o.Key}.KeyOf(action), Remove: []geoconfig.Removal{{Key: snapshots.Row(name), Revision: 1}}}
	_, err := p.o.Store.Apply(ctx, b)
	if fault.Is(err, fault.Conflict) {
		return false, nil
	}
	return err == nil, err
}

type addSnapshotInput struct {
	ChangeHeaders
	Body struct {
		Name   string `json:"name" minLength:"1" maxLength:"128" doc:"Letters, digits, and behind the first also . _ -; no time and no age."`
		KeepMS int64  `json:"keep_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"After how long it is deleted; absent: only by order."`
		DryRun bool   `json:"dry_run,omitempty" doc:"Only check whether it can be made."`
	}
}

// addSnapshot keeps the whole tree as it is now.
func (p pastRoutes) addSnapshot(ctx context.Context, in *addSnapshotInput) (*view.Answer[view.Snapshot], error) {
	const op fault.Op = "api.addSnapshot"
	b := &in.Body
	ctx, o, err := p.order(ctx, &in.ChangeHeaders, in.Body)
	if err != nil {
		return nil, err
	}
	repeated, err := p.isApplied(ctx, &in.ChangeHeaders, o, snapshots.AuditCreate, b.Name)
	if err != nil {
		return nil, err
	}
	if !repeated {
		made, err := p.o.Past.Make(ctx, snapshots.Snapshot{Name: b.Name, By: o.Who}, time.Duration(b.KeepMS)*time.Millisecond, b.DryRun)
		if err != nil {
			return nil, err
		}
		return view.One(made.Revision(), view.OfSnapshot(&made)), nil
	}
	if err := p.o.Past.Refresh(ctx); err != nil {
		return nil, err
	}
	all, _ := p.o.Past.All()
	i := slices.IndexFunc(all, func(x snapshots.Snapshot) bool { return x.Name == b.Name })
	if i < 0 {
		return nil, fault.E(fault.NotFound, op, b.Name, "the snapshot that this request made is deleted by now: send another Idempotency-Key to make one anew")
	}
	return view.One(all[i].Revision(), view.OfSnapshot(&all[i])), nil
}

// removeSnapshot deletes a snapshot.
func (p pastRoutes) removeSnapshot(ctx context.Context, in *named) (*done, error) {
	return p.remove(ctx, in, snapshots.AuditDelete)
}

// removeSchedule ends a schedule.
func (p pastRoutes) removeSchedule(ctx context.Context, in *named) (*done, error) {
	return p.remove(ctx, in, snapshots.AuditUnschedule)
}

// remove deletes what has a name, where it is what the action is about.
func (p pastRoutes) remove(ctx context.Context, in *named, action string) (*done, error) {
	const op fault.Op = "api.remove"
	row := snapshots.Row(in.Name)
	ctx, o, err := p.order(ctx, &in.ChangeHeaders, nil)
	if err != nil {
		return nil, err
	}
	if repeated, err := p.isApplied(ctx, &in.ChangeHeaders, o, action, in.Name); repeated || err != nil {
		return changed(row, err)
	}
	was, err := p.o.Past.Delete(ctx, o.Who, in.Name, true)
	if err != nil {
		return nil, err
	}
	isSchedule := was.Time == 0
	switch {
	case isSchedule && action == snapshots.AuditDelete:
		return nil, fault.E(fault.NotFound, op, in.Name, "is a schedule, and no snapshot: delete it below "+base+"/schedules")
	case !isSchedule && action == snapshots.AuditUnschedule:
		return nil, fault.E(fault.NotFound, op, in.Name, "is a snapshot, and no schedule: delete it below "+base+"/snapshots")
	case o.Match != 0 && o.Match != was.Revision():
		return nil, fault.Errorf(fault.Conflict, op, row.String(), "has revision %d by now", was.Revision())
	}
	_, err = p.o.Past.Delete(ctx, o.Who, in.Name, false)
	return changed(row, err)
}

type addScheduleInput struct {
	ChangeHeaders
	Body struct {
		Name    string `json:"name" minLength:"1" maxLength:"100" doc:"The names of its snapshots begin with it."`
		EveryMS int64  `json:"every_ms" minimum:"1" maximum:"315360000000" doc:"One is made at each whole multiple since 1970, in UTC. Whole minutes."`
		KeepMS  int64  `json:"keep_ms" minimum:"1" maximum:"315360000000" doc:"After how long each is deleted."`
		DryRun  bool   `json:"dry_run,omitempty" doc:"Only check whether it can be made."`
	}
}

// addSchedule has the nodes make snapshots again and again.
func (p pastRoutes) addSchedule(ctx context.Context, in *addScheduleInput) (*done, error) {
	b := &in.Body
	row := snapshots.Row(b.Name)
	ctx, o, err := p.order(ctx, &in.ChangeHeaders, in.Body)
	if err != nil {
		return nil, err
	}
	if repeated, err := p.isApplied(ctx, &in.ChangeHeaders, o, snapshots.AuditSchedule, b.Name); repeated || err != nil {
		return changed(row, err)
	}
	x := snapshots.Schedule{Name: b.Name, By: o.Who, Every: time.Duration(b.EveryMS) * time.Millisecond, Keep: time.Duration(b.KeepMS) * time.Millisecond}
	return changed(row, p.o.Past.MakeSchedule(ctx, x, b.DryRun))
}
