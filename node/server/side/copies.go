package side

import (
	"context"
	"slices"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// copyFor bounds how long an operation waits until another member has it too, beside
// one and a half round trips to that. One that does not answer goes without, and gets
// everything later.
const copyFor = 100 * time.Millisecond

// copyBytes is about how much of a side log goes in one call.
const copyBytes = 1 << 20

// copyTo brings changes of an operation to other members, and waits for those that
// answer soon. One that may lack others gets everything, where it was not away.
func (l *Log) copyTo(ctx context.Context, id ids.Slice, s *slice, serial ids.Serial, changes []tree.SideChange) {
	var group sync.WaitGroup
	for _, n := range l.others(id, false) {
		if l.isAway(n) {
			s.mu.Lock()
			s.has[n] = false
			s.mu.Unlock()
			continue
		}
		group.Go(func() {
			ctx, cancel := l.within(ctx, n, copyFor)
			defer cancel()
			s.mu.Lock()
			list, as, has := changes, serial, s.has[n]
			if !has && s.own != nil {
				list, as = s.own.Changes(), s.serial
			}
			s.mu.Unlock()
			err := l.copyOne(ctx, n, id, as, list)
			l.noteAway(n, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.has[n] = err == nil && (has || s.serial == as); err != nil {
				l.o.Logger.Debug("a member does not have a change of a side log", logattr.Err(err))
			}
		})
	}
	group.Wait()
}

// catchUp brings everything to the members that may lack some of it.
func (l *Log) catchUp(ctx context.Context, id ids.Slice, s *slice) {
	for _, n := range l.others(id, false) {
		s.mu.Lock()
		lacks := s.own != nil && !s.has[n]
		var list []tree.SideChange
		serial := s.serial
		if lacks {
			list = s.own.Changes()
		}
		s.mu.Unlock()
		if !lacks {
			continue
		}
		if l.isAway(n) {
			continue
		}
		err := l.copyOne(ctx, n, id, serial, list)
		l.noteAway(n, err)
		s.mu.Lock()
		s.has[n] = err == nil && s.serial == serial
		s.mu.Unlock()
	}
}

// copyOne brings changes, as of an operation, to a member, with the content that they
// name.
func (l *Log) copyOne(ctx context.Context, to ids.Node, id ids.Slice, serial ids.Serial, changes []tree.SideChange) error {
	list, err := tree.SideContent(changes, l.o.Nodes)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		if err := l.put(ctx, to, id, list, nil); err != nil {
			return err
		}
	}
	for len(changes) > 0 {
		req := &pb.SideCopyRequest{Slice: uint32(id), Owner: string(l.o.Self), Serial: uint64(serial)}
		for bytes := 0; len(changes) > 0 && bytes < copyBytes; changes = changes[1:] {
			c := &pb.SideChange{Key: changes[0].Key, Kept: tree.AppendSideChange(nil, &changes[0])}
			bytes += len(c.Key) + len(c.Kept)
			req.Changes = append(req.Changes, c)
		}
		part, cancel := context.WithTimeout(ctx, sendFor)
		b, err := l.o.Caller.Call(part, string(to), wire.Operation, method.SideCopy, req, nil, &pb.SideCopyResponse{})
		b.Release()
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// Copy takes what another node keeps, or forgets it.
func (l *Log) Copy(_ context.Context, req *pb.SideCopyRequest) (*pb.SideCopyResponse, error) {
	const op fault.Op = "side.Copy"
	id := logID{ids.Slice(req.Slice), ids.Node(req.Owner)}
	if id.owner == l.o.Self || id.owner == "" || len(id.owner) > 255 || id.slice == 0 {
		return nil, fault.E(fault.Invalid, op, string(id.owner), "is no other node's side log")
	}
	changes := make([]tree.SideChange, 0, len(req.Changes))
	for _, c := range req.Changes {
		x, err := tree.DecodeSideChange(c.Key, c.Kept)
		if err != nil {
			return nil, err
		}
		changes = append(changes, x)
	}
	if len(changes) > 0 && l.size() > 2*l.o.Bytes {
		return nil, fault.E(fault.NoSpace, op, "", "this node keeps as much of side logs as it may")
	}
	for {
		s, k, err := l.of(id.slice)
		if err != nil {
			return nil, err
		}
		again, err := l.take(s, k, id, ids.Serial(req.Serial), changes)
		if req.Ends && !again && err == nil {
			_, err = l.drop(id, s)
		}
		if !again {
			l.wakeUp()
			return &pb.SideCopyResponse{}, err
		}
	}
}

// take keeps changes of another node's side log, but for those of keys that it has
// newer ones of.
func (l *Log) take(s *slice, k *kept, id logID, serial ids.Serial, changes []tree.SideChange) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || len(changes) == 0 {
		return s.gone, nil
	}
	l.side(s, id)
	c := s.copies[id.owner]
	newer := slices.DeleteFunc(changes, func(x tree.SideChange) bool { return c.at[string(x.Key)] > serial })
	if err := k.put(id, newer); err != nil {
		return false, err
	}
	for i := range newer {
		c.at[string(newer[i].Key)] = serial
	}
	c.Apply(newer)
	return false, nil
}
