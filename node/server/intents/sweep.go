package intents

import (
	"context"
	"maps"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// opSweep is the operation in the errors of a sweep.
const opSweep fault.Op = "intents.sweep"

// sweepEvery is how often intents and marks that were left are looked for.
const sweepEvery = 5 * time.Second

// Ages from which a sweeper looks at what was left.
const (
	// nonameAge: a create over two slices takes less, retries included.
	nonameAge = time.Minute
	// namedAge: no ticket is left that could name the object again, because the
	// mark is what makes a ticket good for one name.
	namedAge = ticket.MadeLife + 5*time.Minute
	// fenceAge: no registration is left that could still send the name.
	fenceAge = 24 * time.Hour
	// sweepLimit bounds the marks of one duty in one round; the next round goes
	// on behind them. Those of a lane that is busy wait until it comes round.
	sweepLimit = 256
)

// Resume asks for a slice's open intents to be finished soon. It does not wait.
func (r *Runner) Resume(id ids.Slice) {
	select {
	case r.queue <- id:
	default: // the next sweep finds it
	}
}

// Run finds what is to be settled, until ctx ends. It does not wait for other
// nodes: the lanes do.
func (r *Runner) Run(ctx context.Context) {
	tick := time.NewTicker(min(sweepEvery, r.o.StepTimeout))
	defer tick.Stop()
	for first := 0; ; {
		select {
		case <-ctx.Done():
			return
		case id := <-r.queue:
			r.finish(id)
		case <-tick.C:
			rows := r.o.Leading()
			maps.DeleteFunc(r.swept, func(id ids.Slice, _ map[tree.Duty]ids.Object) bool {
				return !slices.ContainsFunc(rows, func(r geoconfig.SliceRow) bool { return r.ID == id })
			})
			for n := range rows {
				row := &rows[(first+n)%len(rows)]
				r.finish(row.ID)
				r.sweepPrepared(row.ID)
				r.sweepMarks(row.ID)
			}
			first++
			r.forgetUnseen()
		}
	}
}

// forgetUnseen ends a round of sweeps: intents that it did not meet are over.
func (r *Runner) forgetUnseen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, met := range r.seen {
		if met.round != r.round {
			delete(r.seen, id)
		}
	}
	r.round++
}

// finish resumes the intents of a slice that this process does not run.
func (r *Runner) finish(id ids.Slice) {
	open, err := tree.OpenIntents(r.o.Committed(id))
	if err != nil {
		r.o.Logger.Error("open intents could not be read", logattr.Slice(id), logattr.Err(err))
		return
	}
	open = slices.DeleteFunc(open, func(o tree.OpenIntent) bool {
		r.mu.Lock()
		mine := r.own[o.Intent]
		r.mu.Unlock()
		if plant.On(plant.IntentAbortsOpen) {
			return o.Decided
		}
		return mine || !r.isOld(o.Intent, id) // one that began a moment ago may not be noted yet: it is young
	})
	settle(r, open, func(o *tree.OpenIntent) lane { return laneOf(dutyResume, id, o.Others()...) },
		func(ctx context.Context, o *tree.OpenIntent) bool { return r.pending(ctx, id, o) || r.end(ctx, id, *o) })
}

// pending reports whether a step of an intent waits to be committed: its outcome
// may be on its way.
func (r *Runner) pending(ctx context.Context, id ids.Slice, o *tree.OpenIntent) bool {
	if plant.On(plant.IntentAbortsOpen) {
		return false
	}
	pending, err := r.o.Loop.Uncommitted(ctx, id, o.Keys()...)
	return err != nil || pending
}

// isOld reports whether an intent began before this node led its slice (0 for
// one that another slice coordinates), or so long ago that its
// coordinator would have noted it.
func (r *Runner) isOld(i tree.Intent, id ids.Slice) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	met, seen := r.seen[i]
	if !seen {
		met.first = r.o.Clock()
	}
	met.round = r.round
	r.seen[i] = met
	if !seen {
		p := r.o.Loop.Published(id)
		return p != nil && p.Since > 0 && ids.Object(i).Number() <= p.Since
	}
	return r.o.Clock()-met.first > r.o.StepTimeout
}

// sweepPrepared asks the coordinators of intents that stay prepared here.
func (r *Runner) sweepPrepared(id ids.Slice) {
	prepared, err := tree.Prepared(r.o.Committed(id))
	if err != nil {
		r.o.Logger.Error("prepared intents could not be read", logattr.Slice(id), logattr.Err(err))
		return
	}
	prepared = slices.DeleteFunc(prepared, func(p tree.Intent) bool { return p.Slice() == id || !r.isOld(p, 0) })
	settle(r, prepared, func(p *tree.Intent) lane { return laneOf(dutyPrepared, id, p.Slice()) },
		func(ctx context.Context, p *tree.Intent) bool { return r.settlePrepared(ctx, id, *p) })
}

// settlePrepared lets go of what a prepared intent holds here, where its
// coordinator does not know it any more. It reports whether that is known.
func (r *Runner) settlePrepared(ctx context.Context, id ids.Slice, p tree.Intent) bool {
	if open, err := r.isOpen(ctx, p); err != nil || open {
		return err == nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	step := &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(p), Phase: pb.Step_ABORT}}}
	_, err := r.o.Propose(ctx, id, step, 0, 0)
	if err != nil {
		r.o.Logger.Debug("an intent could not be given up", logattr.Err(err))
	}
	return err == nil
}

// isOpen asks an intent's coordinator.
func (r *Runner) isOpen(ctx context.Context, p tree.Intent) (bool, error) {
	call, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	if r.o.Loop.Published(p.Slice()).Serves(r.o.Clock()) {
		return tree.IsOpen(r.o.Committed(p.Slice()), p)
	}
	row, ok := r.o.Row(p.Slice())
	if !ok || row.Active == r.o.Self {
		return false, fault.E(fault.NotActive, opSweep, "", "no node acts for the intent's slice")
	}
	var answer pb.IntentResponse
	b, err := r.o.Host.Call(call, string(row.Active), wire.Operation, method.Intent, &pb.IntentRequest{Intent: uint64(p)}, nil, &answer)
	b.Release()
	return answer.Phase != 0, err
}

// sweepMarks settles what creates over two slices left (tree.Sweep).
func (r *Runner) sweepMarks(id ids.Slice) {
	now := r.o.Wall()
	before := func(d tree.Duty) hlc.Time {
		age := map[tree.Duty]time.Duration{tree.DutyNoname: nonameAge, tree.DutyNamed: namedAge, tree.DutyFence: fenceAge}[d]
		return hlc.FromWall(now.Add(-age))
	}
	if r.swept[id] == nil {
		r.swept[id] = map[tree.Duty]ids.Object{}
	}
	marks, err := tree.Sweep(r.o.Committed(id), before, r.swept[id], sweepLimit)
	if err != nil {
		r.o.Logger.Error("marks could not be read", logattr.Slice(id), logattr.Err(err))
		return
	}
	other := func(m *tree.Mark) lane {
		asked := map[tree.Duty]ids.Slice{tree.DutyNoname: m.Dir.Slice(), tree.DutyNamed: m.Object.Slice(), tree.DutyFence: id}
		return laneOf(dutyMarks, id, asked[m.Duty])
	}
	settle(r, marks, other, func(ctx context.Context, m *tree.Mark) bool {
		err := r.settleMark(ctx, id, *m)
		if err != nil && ctx.Err() == nil {
			r.o.Logger.Debug("a mark could not be settled", logattr.Object(m.Object), logattr.Err(err))
		}
		return err == nil
	})
}

func (r *Runner) settleMark(ctx context.Context, id ids.Slice, m tree.Mark) error {
	reap := &pb.Reap{Object: uint64(m.Object), Dir: uint64(m.Dir)}
	switch m.Duty {
	case tree.DutyNoname:
		fence := &pb.Reap{Object: uint64(m.Object), Dir: uint64(m.Dir), Fence: true}
		result, err := r.reap(ctx, m.Dir.Slice(), fence)
		if err != nil {
			return err
		}
		reap.Confirm = result.Existed
	case tree.DutyNamed:
		if _, err := r.reap(ctx, m.Object.Slice(), &pb.Reap{Object: uint64(m.Object), Confirm: true}); err != nil {
			return err
		}
		reap.Forget = true
	case tree.DutyFence:
		reap.Forget = true
	}
	_, err := r.reap(ctx, id, reap)
	return err
}

// reap runs a sweeper's operation at the node that acts for a slice.
func (r *Runner) reap(ctx context.Context, id ids.Slice, reap *pb.Reap) (*pb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.StepTimeout)
	defer cancel()
	op := &pb.Operation{Op: &pb.Operation_Reap{Reap: reap}}
	if r.o.Loop.Published(id).Serves(r.o.Clock()) {
		a, err := r.o.Propose(ctx, id, op, 0, 0)
		if err != nil {
			return nil, err
		}
		return a.Result, nil
	}
	row, ok := r.o.Row(id)
	if !ok || row.Active == r.o.Self {
		return nil, fault.E(fault.NotActive, opSweep, "", "no node acts for the slice now")
	}
	var answer pb.OperateResponse
	b, err := r.o.Host.Call(ctx, string(row.Active), wire.Operation, method.Operate, &pb.OperateRequest{Slice: uint32(id), Operation: op}, nil, &answer)
	b.Release()
	if err == nil && answer.Refusal != nil {
		err = fault.E(fault.Kind(answer.Refusal.Kind), opSweep, "", answer.Refusal.Message)
	}
	return answer.Result, err
}
