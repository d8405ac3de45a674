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
// one and a half round trips to that, and how long a copy waits for what comes before a
// change. A member that does not answer goes without, and gets everything later.
const copyFor = 100 * time.Millisecond

// copyBytes is about how much of a side log goes in one call.
const copyBytes = 1 << 20

// part is what goes to a copy: the changes up to an operation, behind another one; after
// is 0 where it is everything.
type part struct {
	after, serial ids.Serial
	changes       []tree.SideChange
}

// size is how many bytes the changes take in memory, about.
func (p part) size() (n int) {
	for i := range p.changes {
		n += len(p.changes[i].Key) + len(p.changes[i].Value) + len(p.changes[i].Before)
	}
	return n
}

// copyTo brings changes of an operation to other members, and waits for those that
// answer soon. One that may lack others gets everything, where it was not away.
func (l *Log) copyTo(ctx context.Context, id ids.Slice, s *slice, did part) {
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
			has := s.has[n]
			s.mu.Unlock()
			var err error = fault.E(fault.Again, "side.copyTo", string(n), "it may lack what came before")
			if has {
				err = l.copyOne(ctx, n, id, did)
			}
			all := part{serial: did.serial}
			if fault.Is(err, fault.Again) {
				if all = s.everything(); all.changes != nil {
					err = l.copyOne(ctx, n, id, all)
				}
				has = false
			}
			l.noteAway(n, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.has[n] = err == nil && (has || s.serial == all.serial); err != nil {
				l.o.Logger.Debug("a member does not have a change of a side log", logattr.Err(err))
			}
		})
	}
	group.Wait()
}

// everything is all that is to be kept of a slice's own side log.
func (s *slice) everything() part {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		return part{serial: s.serial}
	}
	return part{serial: s.serial, changes: s.own.Changes()}
}

// catchUp brings everything to the members that may lack some of it.
func (l *Log) catchUp(ctx context.Context, id ids.Slice, s *slice) {
	for _, n := range l.others(id, false) {
		s.mu.Lock()
		has := s.own == nil || s.has[n]
		s.mu.Unlock()
		if has || l.isAway(n) {
			continue
		}
		all := s.everything()
		err := l.copyOne(ctx, n, id, all)
		l.noteAway(n, err)
		s.mu.Lock()
		s.has[n] = err == nil && s.serial == all.serial
		s.mu.Unlock()
	}
}

// copyOne brings changes to a member, with the content that they name.
func (l *Log) copyOne(ctx context.Context, to ids.Node, id ids.Slice, p part) error {
	list, err := tree.SideContent(p.changes, l.o.Nodes)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		if err := l.put(ctx, to, id, list, nil); err != nil {
			return err
		}
	}
	for n, rest := uint32(0), p.changes; len(rest) > 0; n++ {
		req := &pb.SideCopyRequest{Slice: uint32(id), Owner: string(l.o.Self), Serial: uint64(p.serial), After: uint64(p.after), Part: n}
		for bytes := 0; len(rest) > 0 && bytes < copyBytes; rest = rest[1:] {
			c := onWire(&rest[0])
			bytes += len(c.Key) + len(c.Kept)
			req.Changes = append(req.Changes, c)
		}
		req.More = len(rest) > 0
		sent, cancel := context.WithTimeout(ctx, sendFor)
		b, err := l.o.Caller.Call(sent, string(to), wire.Operation, method.SideCopy, req, nil, &pb.SideCopyResponse{})
		b.Release()
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// onWire is how a change goes to another member, whose program may be an older one.
func onWire(c *tree.SideChange) *pb.SideChange {
	bare := *c
	bare.Serial = 0
	return &pb.SideChange{Key: c.Key, Kept: tree.AppendSideChange(nil, &bare), Serial: uint64(c.Serial)}
}

// copied is a copy of another node's side log. What the fields beside the log say is
// lost with a start: then the copy lacks something, for all that is known.
type copied struct {
	*tree.Side
	whole  ids.Serial    // it has all changes up to this operation; 0: it may lack any
	grown  chan struct{} // closed when whole grows
	coming part          // parts of changes of which others are still to come
	next   uint32        // the part that comes next
}

func newCopied(s *tree.Side) *copied { return &copied{Side: s, grown: make(chan struct{})} }

// Copy takes what another node keeps, or forgets it. Changes whose predecessors are not
// here are waited for a moment; then the answer is Again.
func (l *Log) Copy(ctx context.Context, req *pb.SideCopyRequest) (*pb.SideCopyResponse, error) {
	const op fault.Op = "side.Copy"
	id := logID{ids.Slice(req.Slice), ids.Node(req.Owner)}
	if id.owner == l.o.Self || id.owner == "" || len(id.owner) > 255 || id.slice == 0 {
		return nil, fault.E(fault.Invalid, op, string(id.owner), "is no other node's side log")
	}
	if req.Ends {
		return &pb.SideCopyResponse{}, l.end(id, ids.Serial(req.Serial))
	}
	if len(req.Merged) > 0 {
		return &pb.SideCopyResponse{}, l.forgetMerged(id, req)
	}
	changes := make([]tree.SideChange, 0, len(req.Changes))
	for _, c := range req.Changes {
		x, err := tree.DecodeSideChange(c.Key, c.Kept)
		if err != nil {
			return nil, err
		}
		if x.Serial = ids.Serial(c.Serial); x.Serial == 0 { // of an older program
			x.Serial = ids.Serial(req.Serial)
		}
		changes = append(changes, x)
	}
	if len(changes) > 0 && l.size() > 2*l.o.Bytes {
		return nil, fault.E(fault.NoSpace, op, "", "this node keeps as much of side logs as it may")
	}
	p, err := l.join(id, req, changes)
	if err == nil && len(p.changes) > 0 {
		err = l.takeInTurn(ctx, id, p)
	}
	return &pb.SideCopyResponse{}, err
}

// takeInTurn takes changes once what came before them is here.
func (l *Log) takeInTurn(ctx context.Context, id logID, p part) error {
	const op fault.Op = "side.takeInTurn"
	patience := time.NewTimer(copyFor / 2) // the answer must be there before its caller gives up
	defer patience.Stop()
	for {
		s, k, err := l.of(id.slice)
		if err != nil {
			return err
		}
		again, lacks, err := l.take(s, k, id, p)
		switch {
		case again:
			continue
		case lacks == nil || err != nil:
			l.wakeUp()
			return err
		}
		select {
		case <-lacks:
		case <-patience.C:
			return fault.E(fault.Again, op, string(id.owner), "this copy lacks what came before the change")
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, op, string(id.owner), ctx.Err())
		}
	}
}

// end forgets a side log of which the copy of the slice here shows everything.
func (l *Log) end(id logID, shown ids.Serial) error {
	s := l.known(id.slice)
	if s == nil {
		return nil
	}
	if !l.shows(id.slice, shown) {
		return fault.E(fault.Again, "side.end", string(id.owner), "this copy does not show yet what was merged")
	}
	_, err := l.drop(id, s)
	l.wakeUp()
	return err
}

// take keeps changes of another node's side log, but for those of keys that it has
// newer ones of. lacks is not nil where changes are missing that came before: it is
// closed when some of them have come.
func (l *Log) take(s *slice, k *kept, id logID, p part) (again bool, lacks <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return true, nil, nil
	}
	l.side(s, id)
	c := s.copies[id.owner]
	if p.after > c.whole {
		return false, c.grown, nil
	}
	newer := slices.DeleteFunc(p.changes, func(x tree.SideChange) bool {
		has, is := c.Change(x.Key)
		return is && has.Serial > x.Serial
	})
	if err := k.put(id, newer); err != nil {
		return false, nil, err
	}
	c.Apply(newer)
	s.seen = max(s.seen, p.serial)
	if p.serial > c.whole {
		c.whole = p.serial
		close(c.grown)
		c.grown = make(chan struct{})
	}
	return false, nil, nil
}

// join puts a part of changes behind those before it, and returns them all with the
// last one: names come in other parts than what they mean.
func (l *Log) join(id logID, req *pb.SideCopyRequest, changes []tree.SideChange) (part, error) {
	p := part{ids.Serial(req.After), ids.Serial(req.Serial), changes}
	if req.Part == 0 && !req.More {
		return p, nil
	}
	s, _, err := l.of(id.slice)
	if err != nil {
		return part{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.side(s, id)
	c := s.copies[id.owner]
	if req.Part == 0 {
		c.coming, c.next = part{after: p.after, serial: p.serial}, 0
	}
	if p.after != c.coming.after || p.serial != c.coming.serial || req.Part != c.next {
		return part{}, fault.E(fault.Again, "side.join", req.Owner, "this copy lacks the part before this one")
	}
	c.coming.changes = append(c.coming.changes, changes...)
	if c.next++; req.More {
		return part{}, nil
	}
	p = c.coming
	c.coming, c.next = part{}, 0
	return p, nil
}
