package server

import (
	"context"
	"maps"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

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

// resume asks for a slice's open intents to be finished soon.
func (i *intents) resume(id ids.Slice) {
	select {
	case i.queue <- id:
	default: // the next sweep finds it
	}
}

// run finds what is to be settled, until ctx ends. It does not wait for other
// nodes: the lanes do.
func (i *intents) run(ctx context.Context) {
	tick := time.NewTicker(min(sweepEvery, i.s.deps.StepPatience))
	defer tick.Stop()
	for first := 0; ; {
		select {
		case <-ctx.Done():
			return
		case id := <-i.queue:
			i.finish(id)
		case <-tick.C:
			rows := i.s.leading()
			maps.DeleteFunc(i.swept, func(id ids.Slice, _ map[tree.Duty]ids.Object) bool {
				return !slices.ContainsFunc(rows, func(r geoconfig.SliceRow) bool { return r.ID == id })
			})
			for n := range rows {
				row := &rows[(first+n)%len(rows)]
				i.finish(row.ID)
				i.sweepPrepared(row.ID)
				i.sweepMarks(row.ID)
			}
			first++
			i.forgetUnseen()
		}
	}
}

// forgetUnseen ends a round of sweeps: intents that it did not meet are over.
func (i *intents) forgetUnseen() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, met := range i.seen {
		if met.round != i.round {
			delete(i.seen, id)
		}
	}
	i.round++
}

// finish resumes the intents of a slice that nobody here runs.
func (i *intents) finish(id ids.Slice) {
	open, err := tree.OpenIntents(operate.Committed(i.s.store.Meta(), id))
	if err != nil {
		i.s.log.Error("open intents could not be read", "slice", uint32(id), "error", err)
		return
	}
	open = slices.DeleteFunc(open, func(o tree.OpenIntent) bool {
		i.mu.Lock()
		mine := i.own[o.Intent]
		i.mu.Unlock()
		if plant.On(plant.IntentAbortsOpen) {
			return o.Decided
		}
		return mine || !i.s.old(o.Intent, id) // one that began a moment ago may not be noted yet: it is young
	})
	settle(i, open, func(o *tree.OpenIntent) lane { return laneOf(dutyResume, id, o.Others()...) },
		func(ctx context.Context, o *tree.OpenIntent) bool { return i.pending(ctx, id, o) || i.end(ctx, id, *o) })
}

// pending reports whether a step of an intent waits to be committed: its outcome
// may be on its way.
func (i *intents) pending(ctx context.Context, id ids.Slice, o *tree.OpenIntent) bool {
	if plant.On(plant.IntentAbortsOpen) {
		return false
	}
	pending, err := i.s.loop.Uncommitted(ctx, id, o.Keys()...)
	return err != nil || pending
}

// old reports whether an intent began before this node led its slice (0 for
// one that another slice coordinates), or so long ago that whoever began it
// would have noted it.
func (s *Server) old(i tree.Intent, id ids.Slice) bool {
	s.intents.mu.Lock()
	defer s.intents.mu.Unlock()
	met, seen := s.intents.seen[i]
	if !seen {
		met.first = s.clock()
	}
	met.round = s.intents.round
	s.intents.seen[i] = met
	if !seen {
		p := s.loop.Published(id)
		return p != nil && p.Since > 0 && ids.Object(i).Number() <= p.Since
	}
	return s.clock()-met.first > s.deps.StepPatience
}

// sweepPrepared asks the coordinators of intents that stay prepared here.
func (i *intents) sweepPrepared(id ids.Slice) {
	prepared, err := tree.Prepared(operate.Committed(i.s.store.Meta(), id))
	if err != nil {
		i.s.log.Error("prepared intents could not be read", "slice", uint32(id), "error", err)
		return
	}
	prepared = slices.DeleteFunc(prepared, func(p tree.Intent) bool { return p.Slice() == id || !i.s.old(p, 0) })
	settle(i, prepared, func(p *tree.Intent) lane { return laneOf(dutyPrepared, id, p.Slice()) },
		func(ctx context.Context, p *tree.Intent) bool { return i.settlePrepared(ctx, id, *p) })
}

// settlePrepared lets go of what a prepared intent holds here, where its
// coordinator does not know it any more. It reports whether that is known.
func (i *intents) settlePrepared(ctx context.Context, id ids.Slice, p tree.Intent) bool {
	if open, err := i.isOpen(ctx, p); err != nil || open {
		return err == nil
	}
	ctx, cancel := context.WithTimeout(ctx, i.s.deps.StepPatience)
	defer cancel()
	step := &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(p), Phase: pb.Step_ABORT}}}
	_, err := operate.Propose(ctx, i.s.loop, id, step, 0, 0)
	if err != nil {
		i.s.log.Debug("an intent could not be given up", "error", err)
	}
	return err == nil
}

// isOpen asks an intent's coordinator.
func (i *intents) isOpen(ctx context.Context, p tree.Intent) (bool, error) {
	call, cancel := context.WithTimeout(ctx, i.s.deps.StepPatience)
	defer cancel()
	if i.s.loop.Published(p.Slice()).Serves(i.s.clock()) {
		return tree.IsOpen(operate.Committed(i.s.store.Meta(), p.Slice()), p)
	}
	row, ok := i.s.directory.Slice(p.Slice())
	if !ok || row.Active == i.s.id {
		return false, fault.E(fault.NotActive, "server.sweep", "", "no node acts for the intent's slice")
	}
	var answer pb.IntentResponse
	b, err := i.s.host.Call(call, string(row.Active), wire.Operation, method.Intent, &pb.IntentRequest{Intent: uint64(p)}, nil, &answer)
	b.Release()
	return answer.Phase != 0, err
}

// sweepMarks settles what creates over two slices left (tree.Sweep).
func (i *intents) sweepMarks(id ids.Slice) {
	now := i.s.deps.Wall()
	before := func(d tree.Duty) hlc.Time {
		age := map[tree.Duty]time.Duration{tree.DutyNoname: nonameAge, tree.DutyNamed: namedAge, tree.DutyFence: fenceAge}[d]
		return hlc.FromWall(now.Add(-age))
	}
	if i.swept[id] == nil {
		i.swept[id] = map[tree.Duty]ids.Object{}
	}
	marks, err := tree.Sweep(operate.Committed(i.s.store.Meta(), id), before, i.swept[id], sweepLimit)
	if err != nil {
		i.s.log.Error("marks could not be read", "slice", uint32(id), "error", err)
		return
	}
	other := func(m *tree.Mark) lane {
		asked := map[tree.Duty]ids.Slice{tree.DutyNoname: m.Dir.Slice(), tree.DutyNamed: m.Object.Slice(), tree.DutyFence: id}
		return laneOf(dutyMarks, id, asked[m.Duty])
	}
	settle(i, marks, other, func(ctx context.Context, m *tree.Mark) bool {
		err := i.settleMark(ctx, id, *m)
		if err != nil && ctx.Err() == nil {
			i.s.log.Debug("a mark could not be settled", "object", m.Object.String(), "error", err)
		}
		return err == nil
	})
}

func (i *intents) settleMark(ctx context.Context, id ids.Slice, m tree.Mark) error {
	reap := &pb.Reap{Object: uint64(m.Object), Dir: uint64(m.Dir)}
	switch m.Duty {
	case tree.DutyNoname:
		fence := &pb.Reap{Object: uint64(m.Object), Dir: uint64(m.Dir), Fence: true}
		result, err := i.reap(ctx, m.Dir.Slice(), fence)
		if err != nil {
			return err
		}
		reap.Confirm = result.Existed
	case tree.DutyNamed:
		if _, err := i.reap(ctx, m.Object.Slice(), &pb.Reap{Object: uint64(m.Object), Confirm: true}); err != nil {
			return err
		}
		reap.Forget = true
	case tree.DutyFence:
		reap.Forget = true
	}
	_, err := i.reap(ctx, id, reap)
	return err
}

// reap runs a sweeper's operation at the node that acts for a slice.
func (i *intents) reap(ctx context.Context, id ids.Slice, reap *pb.Reap) (*pb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, i.s.deps.StepPatience)
	defer cancel()
	op := &pb.Operation{Op: &pb.Operation_Reap{Reap: reap}}
	if i.s.loop.Published(id).Serves(i.s.clock()) {
		a, err := operate.Propose(ctx, i.s.loop, id, op, 0, 0)
		if err != nil {
			return nil, err
		}
		return a.Result, nil
	}
	row, ok := i.s.directory.Slice(id)
	if !ok || row.Active == i.s.id {
		return nil, fault.E(fault.NotActive, "server.sweep", "", "no node acts for the slice now")
	}
	var answer pb.OperateResponse
	b, err := i.s.host.Call(ctx, string(row.Active), wire.Operation, method.Operate, &pb.OperateRequest{Slice: uint32(id), Operation: op}, nil, &answer)
	b.Release()
	if err == nil && answer.Refusal != nil {
		err = fault.E(fault.Kind(answer.Refusal.Kind), "server.sweep", "", answer.Refusal.Message)
	}
	return answer.Result, err
}
