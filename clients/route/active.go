package route

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Active runs attempts at the node that acts for the slice until one is
// answered. Kinds besides the node's own answer: TimedOut and Canceled, after
// which the outcome is unknown if any attempt was sent, and NotFound for a
// slice that nobody knows.
func (r *Router) Active(ctx context.Context, id ids.Slice, attempt Attempt) error {
	return r.active(ctx, id, attempt, r.watched)
}

func (r *Router) active(ctx context.Context, id ids.Slice, attempt Attempt, run runner) error {
	const op fault.Op = "route.active"
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultLimit)
		defer cancel()
	}
	wait := firstWait
	var last error
	for {
		row, err := r.Row(ctx, id)
		if err == nil {
			var refusal *pb.Refusal
			refusal, err = run(ctx, row, attempt)
			if err == nil && refusal == nil {
				return nil
			}
			if err == nil {
				err = fault.E(fault.Kind(refusal.Kind), op, string(row.Active), refusal.Message)
				if len(refusal.Row) > 0 && r.learnJSON(refusal.Row) {
					continue // it points to somebody else: no need to wait
				}
			} else if !again(err) {
				return err
			}
		} else if fault.Is(err, fault.NotFound) {
			return err
		}
		if ctx.Err() != nil {
			if row.ID != 0 {
				r.seek(row) // with less time than it takes to doubt an active, nobody else would
			}
			return r.giveUp(ctx, id, err, last)
		}
		last = err
		if now, ok := r.Known(id); ok && now.Epoch != row.Epoch {
			continue // learned while waiting
		}
		if err := r.pause(ctx, wait); err != nil {
			return r.giveUp(ctx, id, err, last)
		}
		wait = min(2*wait, lastWait)
		if row.ID != 0 && !fault.Is(err, fault.Overloaded) { // who has too much to do still acts for it
			r.askTogether(ctx, row)
		}
	}
}

// again reports whether an attempt that failed so may be made again: nobody
// answered, or the answer asks for it.
func again(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unreachable, fault.Overloaded, fault.Again, fault.NotActive, fault.WrongEpoch, fault.Closed:
		return true
	case fault.TimedOut, fault.Canceled:
		return true // by the watcher; the caller's own context is looked at apart
	}
	return false
}

func (r *Router) giveUp(ctx context.Context, id ids.Slice, err, last error) error {
	kind := fault.TimedOut
	if fault.Is(context.Cause(ctx), fault.Canceled) {
		kind = fault.Canceled
	}
	if last == nil {
		last = err
	}
	return &fault.Error{Kind: kind, Op: "route.Active", Subject: r.subject(id), Public: "no answer within the limit; whether it was done is not known", Cause: last}
}

func (r *Router) subject(id ids.Slice) string {
	row, _ := r.Known(id)
	return "slice " + geoconfig.SliceKey(row.ID).Name + " at " + string(row.Active)
}

// jitter draws a time around d.
func (r *Router) jitter(d time.Duration) time.Duration { return r.cluster.Jitter(d) }

// pause waits, with jitter, so that clients do not come back all at once.
func (r *Router) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(r.jitter(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
