package route

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Eventually runs an attempt at the node that acts for a slice, as Active does, and
// where that one does not answer within a share of the time, runs copied at the other
// normal members, the nearest first, until one is answered. An active that was away
// is asked last for a while. ctx has a deadline.
func (r *Router) Eventually(ctx context.Context, id ids.Slice, attempt, copied Attempt) error {
	row, err := r.Row(ctx, id)
	if err != nil {
		return err
	}
	if r.isLost(row) {
		return nobodyAnswers
	}
	err = r.anyMember(ctx, id, row, attempt, copied)
	r.noteLost(ctx, id, err)
	return err
}

// anyMember is Eventually for a slice of which some member may answer.
func (r *Router) anyMember(ctx context.Context, id ids.Slice, row geoconfig.SliceRow, attempt, copied Attempt) error {
	if has := r.forActive(ctx, row, false); has > 0 {
		err := during(ctx, has, func(ctx context.Context) error { return r.Active(ctx, id, attempt) })
		if !again(err) {
			r.noteAway(row.Active, false)
			if fault.Is(err, fault.Stale) && r.atMembers(ctx, row, attempt, copied) == nil {
				return nil // a side log has it that is not merged yet
			}
			return err
		}
		if ctx.Err() != nil {
			return err // its caller was interrupted, which says nothing of the node
		}
		r.noteAway(row.Active, !fault.Is(err, fault.Again)) // else it answers, and is behind
	}
	var last error
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		row, err := r.Row(ctx, id)
		if err != nil {
			return err
		}
		if last = r.atMembers(ctx, row, attempt, copied); !again(last) {
			return last
		}
		if err := r.pause(ctx, wait); err != nil {
			return r.giveUp(ctx, id, last, last)
		}
	}
}

// Otherwise runs an attempt of what only the node that acts for a slice does, and where
// that one does not answer within a part of the time, runs aside, if that is not nil,
// with the other normal members, the nearest first. An active that was away is left alone for a while.
// ctx has a deadline. After aside the attempt may still have been done.
func (r *Router) Otherwise(ctx context.Context, id ids.Slice, attempt func(context.Context) error, aside func(context.Context, []ids.Node) error) error {
	row, err := r.Row(ctx, id)
	if err != nil {
		return err
	}
	if r.isLost(row) {
		return nobodyAnswers
	}
	if has := r.forActive(ctx, row, true); has > 0 { // aside takes longer than a read elsewhere
		began := r.cluster.Now()
		err := during(ctx, has, attempt)
		if err == nil {
			r.noteTook(id, r.cluster.Now()-began)
		}
		if fault.Is(err, fault.Again) && aside != nil {
			// It answers, and lacks what a side log has that is not merged yet.
			r.noteAway(row.Active, false)
			return r.inTurns(ctx, row, attempt, aside)
		}
		if !again(err) {
			r.noteAway(row.Active, false)
			missing := fault.Is(err, fault.Stale) || fault.Is(err, fault.NotFound)
			if !missing || aside == nil {
				return err
			}
			// It may be about what a side log has that is not merged yet. Where members that
			// keep side logs do not answer, nobody knows.
			if e := aside(ctx, r.beside(row)); e == nil || again(e) && len(r.cluster.KeepSides(r.beside(row))) > 0 {
				return e
			}
			return err
		}
		if ctx.Err() != nil {
			return err // its caller was interrupted, which says nothing of the node
		}
		r.noteSilent(row, has)
		if aside == nil {
			return err
		}
	}
	if aside == nil && !r.IsAway(id) {
		return attempt(ctx) // however far it is
	}
	if aside == nil {
		return fault.E(fault.TimedOut, "route.Otherwise", string(row.Active), "the slice's active did not answer a moment ago, and only it does this")
	}
	err = aside(ctx, r.beside(row))
	if !again(err) || ctx.Err() != nil {
		return err
	}
	// One of them may act for the slice by now, or the active may be back.
	r.noteAway(row.Active, false)
	return within(ctx, 1, attempt)
}

// Aside runs aside with the normal members of a slice but the active, the nearest first.
// Where they lack what is to be gone on with, and attempt is not nil, the active has its
// turn, and so on: what they had may be merged by now. ctx has a deadline.
func (r *Router) Aside(ctx context.Context, id ids.Slice, attempt func(context.Context) error, aside func(context.Context, []ids.Node) error) error {
	row, err := r.Row(ctx, id)
	if err != nil {
		return err
	}
	if attempt == nil {
		return aside(ctx, r.beside(row))
	}
	return r.inTurns(ctx, row, attempt, aside)
}

// inTurns runs aside and attempt until one of them is done, or fails for good.
func (r *Router) inTurns(ctx context.Context, row geoconfig.SliceRow, attempt func(context.Context) error, aside func(context.Context, []ids.Node) error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := aside(ctx, r.beside(row))
		if !again(err) {
			return err
		}
		if ctx.Err() != nil || r.pause(ctx, wait) != nil {
			return r.giveUp(ctx, row.ID, err, err)
		}
		if e := during(ctx, r.turnOf(ctx, row, activeShare, true), attempt); !again(e) {
			return e
		}
	}
}

// atMembers runs copied at each normal member but the active, and then attempt at
// that one, until one answers. Each gets an equal part of the time that is left. A copy
// that lacks an object may be behind the one that showed its name: the others are asked.
func (r *Router) atMembers(ctx context.Context, row geoconfig.SliceRow, attempt, copied Attempt) (err error) {
	var lacks error
	defer func() {
		if lacks != nil && again(err) {
			err = lacks // nobody who answers has it
		}
	}()
	nodes := r.copies(row)
	for i, n := range nodes {
		run, epoch := copied, ids.Epoch(0)
		if n == row.Active {
			run, epoch = attempt, row.Epoch
		}
		var refusal *pb.Refusal
		err = within(ctx, len(nodes)-i+1, func(ctx context.Context) (err error) {
			refusal, err = run(ctx, n, epoch)
			return err
		})
		if err == nil && refusal != nil {
			err = fault.E(fault.Kind(refusal.Kind), "route.Eventually", string(n), refusal.Message)
			if len(refusal.Row) > 0 && r.learnJSON(refusal.Row) {
				return err // it is another row's members that are to be asked
			}
		}
		if fault.Is(err, fault.Stale) && n != row.Active {
			lacks = err
		} else if !again(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// within runs f within a part of what is left of the context's time.
func within(ctx context.Context, parts int, f func(context.Context) error) error {
	left := DefaultLimit
	if end, ok := ctx.Deadline(); ok {
		left = time.Until(end)
	}
	part, cancel := context.WithTimeout(ctx, left/time.Duration(parts))
	defer cancel()
	return f(part)
}

// during runs f for so long at most.
func during(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	part, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(part)
}
