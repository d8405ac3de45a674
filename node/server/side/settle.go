package side

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// settleEvery is how often changes that are merged go out of a side log.
	settleEvery = 2 * time.Second
	// settleMost bounds how many go at once.
	settleMost = 4096
)

// settle takes what is merged out of the node's own side log, once all normal members
// show it by way of the active and have forgotten it too: what is kept hides what the
// active does since.
func (l *Log) settle(ctx context.Context, id ids.Slice, s *slice) error {
	gone, until, err := l.gone(id, s)
	if err != nil || len(gone) == 0 {
		return err
	}
	req := &pb.SideCopyRequest{Slice: uint32(id), Owner: string(l.o.Self), Serial: uint64(until)}
	for i := range gone {
		req.Merged = append(req.Merged, &pb.SideChange{Key: gone[i].Key, Serial: uint64(gone[i].Serial)})
	}
	if err := l.tellAll(ctx, id, l.o.Self, req); err != nil {
		return err
	}
	k := l.onDisk()
	s.mu.Lock()
	defer s.mu.Unlock()
	return forgetLocked(k, logID{id, l.o.Self}, s.own, gone)
}

// gone lists what may go, and until which serial a copy must show the slice for that.
func (l *Log) gone(id ids.Slice, s *slice) (gone []tree.SideChange, until ids.Serial, err error) {
	p := l.o.Published(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.o.Clock()
	if s.own == nil || p == nil || now < s.settled+settleEvery {
		return nil, 0, nil
	}
	s.settled = now
	gone, err = s.own.Gone(ids.Serial(p.Applied.Load()))
	gone = gone[:min(len(gone), settleMost)]
	for i := range gone {
		until = max(until, gone[i].Merged)
	}
	return gone, until, err
}

// tellAll tells all normal members but this node and a side log's owner something of
// that log.
func (l *Log) tellAll(ctx context.Context, id ids.Slice, owner ids.Node, req *pb.SideCopyRequest) error {
	row, _ := l.o.Row(id)
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	for _, n := range row.Normals() {
		if n == l.o.Self || n == owner {
			continue
		}
		b, err := l.o.Caller.Call(ctx, string(n), wire.Operation, method.SideCopy, req, nil, &pb.SideCopyResponse{})
		b.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// shows reports whether the copy of a slice here shows what the active did up to a
// serial. A node without one answers nobody.
func (l *Log) shows(id ids.Slice, serial ids.Serial) bool {
	p := l.o.Published(id)
	return !p.IsCopy(l.o.Clock()) || ids.Serial(p.Applied.Load()) >= serial
}

// forgetMerged forgets changes of another node's side log that are merged.
func (l *Log) forgetMerged(id logID, req *pb.SideCopyRequest) error {
	s := l.known(id.slice)
	if s == nil {
		return nil
	}
	if !l.shows(id.slice, ids.Serial(req.Serial)) {
		return fault.E(fault.Again, "side.forgetMerged", string(id.owner), "this copy does not show yet what was merged")
	}
	gone := make([]tree.SideChange, 0, len(req.Merged))
	for _, c := range req.Merged {
		gone = append(gone, tree.SideChange{Key: c.Key, Serial: ids.Serial(c.Serial)})
	}
	k := l.onDisk()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.copies[id.owner]; c != nil {
		return forgetLocked(k, id, c.Side, gone)
	}
	return nil
}

// onDisk is what is kept of side logs; nil: nothing ever was.
func (l *Log) onDisk() *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// forgetLocked forgets changes of a side log whose keys were not changed since; with its
// slice's mu held.
func forgetLocked(k *kept, id logID, side *tree.Side, gone []tree.SideChange) error {
	if side == nil || k == nil {
		return nil
	}
	gone = slices.DeleteFunc(gone, func(x tree.SideChange) bool {
		c, is := side.Change(x.Key)
		return !is || c.Serial != x.Serial
	})
	if err := k.forget(id, gone); err != nil {
		return err
	}
	side.Forget(gone)
	return nil
}
