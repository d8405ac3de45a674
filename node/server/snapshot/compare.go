package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// compare checks that what lies here is what the source has, as of one entry.
func (t *receiving) compare(ctx context.Context) error {
	if err := t.settled(ctx); err != nil {
		return err
	}
	applied, err := t.hold(ctx)
	if err != nil {
		return err
	}
	kept, _, err := t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), Compare: true, AtLeast: uint64(applied)}, nil)
	if err != nil {
		return err
	}
	frozen, at, err := t.freezeAt(ctx, ids.Serial(kept.Serial))
	if err != nil {
		return err
	}
	mine, err := sumOf(frozen, t.id, at)
	if e := frozen.Close(); err == nil {
		err = e
	}
	for theirs := []byte(nil); err == nil; {
		var answer *pb.TransferResponse
		if answer, _, err = t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), Token: kept.Token}, nil); err != nil {
			break
		}
		if theirs = answer.Sum; theirs == nil {
			continue
		}
		if !bytes.Equal(mine, theirs) {
			err = fault.Errorf(fault.Corrupt, opReceive, fmt.Sprintf("slices/%d", t.id), "the copy of the state at serial %d differs from what %s has", at.Serial, t.peer)
		}
		break
	}
	return err
}

// until asks the loop again and again until done, or the state is not wanted.
func (t *receiving) until(ctx context.Context, done func(core *replica.Node, now replica.Time) (bool, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var ok bool
		var refused error
		err := t.s.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) { ok, refused = done(core, now) })
		if err == nil {
			err = refused
		}
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settled waits until every row here shows what is applied: some were read as of
// entries that are yet to come, whoever is the active by then.
func (t *receiving) settled(ctx context.Context) error {
	return t.until(ctx, func(*replica.Node, replica.Time) (bool, error) { return t.s.o.Copies.Copied(t.id) })
}

// freezeAt has the log applied up to an entry, and no further until the state of
// then is kept.
func (t *receiving) freezeAt(ctx context.Context, serial ids.Serial) (frozen *meta.Frozen, at replica.Snapshot, err error) {
	err = t.until(ctx, func(core *replica.Node, now replica.Time) (bool, error) {
		if _, err := t.s.o.Copies.Copied(t.id); err != nil {
			return false, err
		}
		in, _ := core.Incomplete(t.id)
		if at = in.At; at.Serial < serial {
			core.TransferHold(now, t.id, serial)
			return false, nil
		}
		frozen = t.s.o.Meta.Freeze()
		core.TransferHold(now, t.id, math.MaxUint64)
		return true, nil
	})
	return frozen, at, err
}

// finish makes the copy durable and says that it is whole.
func (t *receiving) finish(ctx context.Context) error {
	err := t.until(ctx, func(core *replica.Node, _ replica.Time) (bool, error) {
		if _, err := t.s.o.Copies.Copied(t.id); err != nil {
			return false, err
		}
		in, _ := core.Incomplete(t.id)
		b := t.s.o.Meta.NewBatch()
		err := replog.SaveBase(b, t.id, in.At)
		if err == nil {
			err = b.SetApplied(t.id, in.At.Serial) // there may have been no entry
		}
		if err != nil {
			b.Abandon()
			return false, err
		}
		return true, b.Commit()
	})
	if err == nil {
		err = t.s.o.Meta.Flush(ctx)
	}
	if err != nil {
		return err
	}
	return t.s.o.Loop.Ask(ctx, func(*replica.Node, replica.Time) { t.s.o.Copies.CopyDone(t.id, t.base) })
}
