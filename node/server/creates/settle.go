package creates

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

const (
	// settleAfter is how long a create is kept until the active is asked to do it, and
	// how long after that it is asked again.
	settleAfter = 5 * time.Second
	// sweepEvery is the time between two looks at what is kept.
	sweepEvery = time.Second
	// askFor bounds one question to the active, and asksAtOnce those under way.
	askFor     = 10 * time.Second
	asksAtOnce = 8
)

// Run looks after what is kept until the context ends.
func (t *Table) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		for t.sweep(ctx) && pause(ctx, sweepEvery) {
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// sweep forgets on the disk what is settled, and asks the actives for what is kept for
// long. It reports whether something is left.
func (t *Table) sweep(ctx context.Context) (left bool) {
	t.mu.Lock()
	gone, k, now := t.gone, t.kept, t.o.Clock()
	t.gone = nil
	due := map[id]*create{}
	for key, c := range t.creates {
		if c.next <= now {
			c.next = now + settleAfter
			due[key] = c
		}
	}
	t.mu.Unlock()
	if len(gone) > 0 {
		if err := k.drop(gone); err != nil {
			t.o.Logger.Warn("creates that are settled could not be forgotten; a start finds them again", logattr.Err(err))
		}
	}
	var group errgroup.Group
	group.SetLimit(asksAtOnce)
	for key, c := range due {
		group.Go(func() error {
			if err := t.settle(ctx, key, c); err != nil && ctx.Err() == nil {
				t.o.Logger.Debug("the active has not done a create yet", logattr.Slice(key.slice), logattr.Err(err))
			}
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.creates)+len(t.gone) > 0
}

// settle has the active do a create, and forgets it once that is decided.
func (t *Table) settle(ctx context.Context, key id, c *create) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	row, ok := t.o.Row(key.slice)
	if !ok {
		return fault.E(fault.NotActive, "creates.settle", "", "the slice's active is not known")
	}
	var err error
	if row.Active == t.o.Self {
		_, err = t.o.Order(ctx, c.operation())
	} else {
		var answer pb.OperateResponse
		b, e := t.o.Caller.Call(ctx, string(row.Active), wire.Operation, method.Hold, c.req, [][]byte{c.body}, &answer)
		b.Release()
		if err = e; err == nil && answer.Refusal != nil {
			err = fault.E(fault.Kind(answer.Refusal.Kind), "creates.settle", string(row.Active), answer.Refusal.Message)
		}
	}
	if err == nil || fault.Is(err, fault.Expired) { // it was decided before, and that is no longer kept
		t.Settled(key.slice, key.client, key.number)
		return nil
	}
	return err
}
