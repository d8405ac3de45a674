package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store/meta"
)

// opCompare is the operation in the errors of CompareWith.
const opCompare fault.Op = "snapshot.CompareWith"

const (
	// standingRows is about how many bytes of rows are summed up at a time here.
	standingRows = 1 << 20
	// standingWait bounds the wait until this node has applied what the other has: it must
	// not be longer than a lease, for which a standby stands still at most.
	standingWait = time.Second
)

// Compared is what came of a comparison.
type Compared struct {
	Serial ids.Serial // as of which the states were compared
	Equal  bool
}

// CompareWith compares this node's copy of a slice, of which it must be a standby, with that
// of another member, as of one serial. It freezes no writer: this node applies nothing new
// for a moment, and the other keeps a state of one moment. rest is called with the bytes
// that were read since the last call, here and there, and returns once more may be. The
// error is Again where no serial was met at which both stood still, and NotActive where this
// node is no standby; it may be any error of a call.
func (s *Receiver) CompareWith(ctx context.Context, id ids.Slice, peer string, rest func(ctx context.Context, bytes int) error) (Compared, error) {
	t := &receiving{s: s, id: id, peer: peer, began: s.o.Clock(), said: s.o.Clock()}
	frozen, at, token, err := t.meet(ctx)
	if err != nil {
		return Compared{}, err
	}
	mine, err := t.sumStanding(ctx, frozen, at, rest)
	if e := frozen.Close(); err == nil {
		err = fault.Wrap(fault.IO, opCompare, "", e)
	}
	for err == nil {
		var answer *pb.TransferResponse
		if answer, _, err = t.ask(ctx, &pb.TransferRequest{Slice: uint32(id), Token: token}, nil); err != nil {
			break
		}
		if answer.Sum != nil {
			return Compared{at.Serial, bytes.Equal(mine, answer.Sum)}, nil
		}
		err = rest(ctx, sumBytes)
	}
	return Compared{}, err
}

// meet has the other member keep a state, and freezes this node's of the same serial.
func (t *receiving) meet(ctx context.Context) (frozen *meta.Frozen, at replica.Snapshot, token uint64, err error) {
	defer t.s.o.Loop.Do(func(core *replica.Node, now replica.Time) { core.Release(now, t.id) })
	applied, err := t.standStill(ctx, 0)
	if err != nil {
		return nil, at, 0, err
	}
	kept, _, err := t.ask(ctx, &pb.TransferRequest{Slice: uint32(t.id), Compare: true, AtLeast: uint64(applied)}, nil)
	if err != nil {
		return nil, at, 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, standingWait)
	defer cancel()
	serial := ids.Serial(kept.Serial)
	if _, err = t.standStill(ctx, serial); err != nil {
		return nil, at, 0, err
	}
	err = t.until(bounded, func(core *replica.Node, _ replica.Time) (bool, error) {
		known := false
		if at, known = core.Snapshot(t.id); !known {
			return false, notStanding(t.id)
		}
		switch {
		case at.Serial > serial:
			return false, fault.Errorf(fault.Again, opCompare, fmt.Sprintf("slices/%d", t.id), "this node is at %d already, the other at %d", at.Serial, serial)
		case at.Serial < serial:
			return false, nil
		}
		frozen = t.s.o.Meta.Freeze()
		return true, nil
	})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = fault.Errorf(fault.Again, opCompare, fmt.Sprintf("slices/%d", t.id), "this node did not come to serial %d", serial)
	}
	return frozen, at, kept.Token, err
}

// standStill has nothing applied behind a serial, for a lease at most. It returns what is
// applied.
func (t *receiving) standStill(ctx context.Context, upTo ids.Serial) (applied ids.Serial, err error) {
	standby := false
	err = t.s.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) { applied, standby = core.Hold(now, t.id, upTo) })
	if err == nil && !standby {
		err = notStanding(t.id)
	}
	return applied, err
}

func notStanding(id ids.Slice) error {
	return fault.E(fault.NotActive, opCompare, fmt.Sprintf("slices/%d", id), "this node is no standby of the slice")
}

// sumStanding sums up a state, a little at a time.
func (t *receiving) sumStanding(ctx context.Context, frozen *meta.Frozen, at replica.Snapshot, rest func(context.Context, int) error) ([]byte, error) {
	c := newCopySum(at)
	for behind := (meta.Row{}); ; {
		rows, err := frozen.Rows(t.id, behind, standingRows)
		if err != nil || len(rows) == 0 {
			return c.bytes(), err
		}
		size := 0
		for i := range rows {
			c.add(&rows[i])
			size += len(rows[i].Key) + len(rows[i].Value)
		}
		behind = rows[len(rows)-1]
		if err := rest(ctx, size); err != nil {
			return nil, err
		}
	}
}
