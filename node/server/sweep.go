package server

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/method"
	"cartwheel.dev/node/wire/pb"
)

// Ages from which a sweeper looks at what was left.
const (
	// nonameAge: a create over two slices takes less, retries included.
	nonameAge = time.Minute
	// fenceAge: no registration is left that could still send the name.
	fenceAge = 24 * time.Hour
	// sweepLimit bounds one round.
	sweepLimit = 256
)

// resume asks for a slice's open intents to be finished soon.
func (i *intents) resume(id geoconfig.SliceID) {
	select {
	case i.queue <- id:
	default: // the next sweep finds it
	}
}

// run finishes open intents and sweeps, until ctx ends.
func (i *intents) run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-i.queue:
			i.finish(ctx, id)
		case <-tick.C:
			for _, row := range i.s.leading() {
				i.finish(ctx, row.ID)
				i.sweepPrepared(ctx, row.ID)
				i.sweepMarks(ctx, row.ID)
			}
		}
	}
}

// finish resumes the intents of a slice that nobody here runs.
func (i *intents) finish(ctx context.Context, id geoconfig.SliceID) {
	open, err := tree.OpenIntents(operate.Committed(i.s.store.Meta(), id))
	if err != nil {
		i.s.log.Error("open intents could not be read", "slice", uint32(id), "error", err)
		return
	}
	for _, o := range open {
		i.mu.Lock()
		mine := i.own[o.Intent]
		i.mu.Unlock()
		// One that began a moment ago may not be noted yet: it is young.
		if mine || !i.s.old(o.Intent, id) {
			continue
		}
		i.end(ctx, id, o)
	}
}

// old reports whether an intent began before this node led its slice (0 for
// one that another slice coordinates), or so long ago that whoever began it
// would have noted it.
func (s *Server) old(i tree.Intent, id geoconfig.SliceID) bool {
	s.intents.mu.Lock()
	defer s.intents.mu.Unlock()
	first, seen := s.intents.seen[i]
	if !seen {
		s.intents.seen[i] = s.clock()
		p := s.loop.Published(id)
		return p != nil && p.Since > 0 && geoconfig.ObjectID(i).Number() <= p.Since
	}
	return s.clock()-first > stepPatience
}

// sweepPrepared asks the coordinators of intents that stay prepared here.
func (i *intents) sweepPrepared(ctx context.Context, id geoconfig.SliceID) {
	prepared, err := tree.Prepared(operate.Committed(i.s.store.Meta(), id))
	if err != nil {
		i.s.log.Error("prepared intents could not be read", "slice", uint32(id), "error", err)
		return
	}
	for _, p := range prepared {
		if p.Slice() == id || !i.s.old(p, 0) {
			continue
		}
		if open, err := i.isOpen(ctx, p); err != nil || open {
			continue
		}
		step := &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(p), Phase: pb.Step_ABORT}}}
		if _, err := i.s.propose(ctx, id, step, 0, 0); err != nil && ctx.Err() == nil {
			i.s.log.Debug("an intent could not be given up", "error", err)
		}
	}
}

// isOpen asks an intent's coordinator.
func (i *intents) isOpen(ctx context.Context, p tree.Intent) (bool, error) {
	call, cancel := context.WithTimeout(ctx, stepPatience)
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
func (i *intents) sweepMarks(ctx context.Context, id geoconfig.SliceID) {
	before := hlc.FromWall(i.s.deps.Wall().Add(-nonameAge))
	marks, err := tree.Sweep(operate.Committed(i.s.store.Meta(), id), before, sweepLimit)
	if err != nil {
		i.s.log.Error("marks could not be read", "slice", uint32(id), "error", err)
		return
	}
	for _, m := range marks {
		if err := i.settle(ctx, id, m); err != nil && ctx.Err() == nil {
			i.s.log.Debug("a mark could not be settled", "object", m.Object.String(), "error", err)
		}
	}
}

func (i *intents) settle(ctx context.Context, id geoconfig.SliceID, m tree.Mark) error {
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
		if m.Time > hlc.FromWall(i.s.deps.Wall().Add(-fenceAge)) {
			return nil
		}
		reap.Forget = true
	}
	_, err := i.reap(ctx, id, reap)
	return err
}

// reap runs a sweeper's operation at the node that acts for a slice.
func (i *intents) reap(ctx context.Context, id geoconfig.SliceID, reap *pb.Reap) (*pb.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	op := &pb.Operation{Op: &pb.Operation_Reap{Reap: reap}}
	if i.s.loop.Published(id).Serves(i.s.clock()) {
		a, err := i.s.propose(ctx, id, op, 0, 0)
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
