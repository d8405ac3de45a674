package side

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// passFor bounds how long an operation is with the member that does those of this
	// side, beside one and a half round trips to it, before this node does it by itself. A member
	// that did not answer is left alone for awayFor.
	passFor, awayFor = 50 * time.Millisecond, 5 * time.Second
	// unknownTrip stands for a round trip that nobody has measured.
	unknownTrip = 50 * time.Millisecond
)

// Operate does a client's operation at this side of a cut: here, or at the member that
// does them. Where the node acts for the slice, or has no copy, it is NotActive; what
// needs an active is TimedOut.
func (l *Log) Operate(ctx context.Context, op *operate.Operation) (*pb.Result, error) {
	if r := l.done.get(op.Client, op.Number); r != nil {
		return r, nil
	}
	for _, n := range l.doers(op) {
		if l.isAway(n) {
			continue
		}
		r, err := l.pass(ctx, n, op)
		if l.noteAway(n, err); err == nil || !mayGoOn(err) {
			return r, err
		}
	}
	return l.Here(ctx, op)
}

// doers are the members that are to do an operation before this node does: the one that
// has changes of its files which are not merged, if there is one, so that one side log
// has all of a file; else those that come before this node.
func (l *Log) doers(op *operate.Operation) []ids.Node {
	owner, is := l.ownerOf(op.Slice, op.Op)
	switch {
	case is && owner == l.o.Self:
		return nil
	case is && slices.Contains(l.others(op.Slice, false), owner):
		return []ids.Node{owner}
	}
	return l.others(op.Slice, true)
}

// ownerOf is the member whose side log has the last change of a file that an operation
// goes on with; false: none has.
func (l *Log) ownerOf(id ids.Slice, op *pb.Operation) (owner ids.Node, is bool) {
	s := l.known(id)
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := under{l, s, id}.view()
	if s.own != nil {
		v = tree.Over(s.own, v)
	}
	key := tree.GoesOnWith(v, op)
	if key == nil {
		return "", false
	}
	_, owner = s.newest(key, 0, "")
	return owner, owner != ""
}

// others are the normal members of a slice beside its active and this node that can be
// reached, in the row's order; with before, only those that come before this node.
func (l *Log) others(id ids.Slice, before bool) (out []ids.Node) {
	row, _ := l.o.Row(id)
	for _, n := range row.Normals() {
		if n == l.o.Self && before {
			break
		}
		if n != l.o.Self && n != row.Active && l.o.Caller.Connected(string(n), wire.Operation) {
			out = append(out, n)
		}
	}
	return out
}

// within bounds a call to a node by one and a half round trips and something beside.
func (l *Log) within(ctx context.Context, n ids.Node, beside time.Duration) (context.Context, context.CancelFunc) {
	trip, ok := l.o.Distance(n)
	if !ok {
		trip = unknownTrip
	}
	return context.WithTimeout(ctx, trip+trip/2+beside)
}

// isAway reports whether a node did not answer a moment ago.
func (l *Log) isAway(n ids.Node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Clock() < l.away[n]
}

// noteAway notes whether a node answered.
func (l *Log) noteAway(n ids.Node, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.away, n); fault.Is(err, fault.TimedOut) || fault.Is(err, fault.Unreachable) || fault.Is(err, fault.Canceled) {
		l.away[n] = l.o.Clock() + awayFor
	}
}

// pass has another member do an operation.
func (l *Log) pass(ctx context.Context, to ids.Node, op *operate.Operation) (*pb.Result, error) {
	ctx, cancel := l.within(ctx, to, passFor)
	defer cancel()
	list, _, _, err := l.contentOf(op.Op.GetCommit())
	if err == nil && len(list) > 0 { // a chunk that is not here may be there
		err = l.put(ctx, to, op.Slice, list, nil)
	}
	if err != nil && !fault.Is(err, fault.Missing) {
		return nil, err
	}
	req := &pb.OperateRequest{Slice: uint32(op.Slice), Client: op.Client, Number: op.Number, Operation: op.Op, Trusted: op.Trusted, User: op.User,
		Principal: &pb.Principal{Uid: op.Principal.UID, Gid: op.Principal.GID, Groups: op.Principal.Groups}}
	var answer pb.OperateResponse
	b, err := l.o.Caller.Call(ctx, string(to), wire.Operation, method.Side, req, [][]byte{op.Body}, &answer)
	b.Release()
	return answer.Result, err
}

// mayGoOn reports whether this node may do what another one did not.
func mayGoOn(err error) bool { return !fault.Is(err, fault.NoSpace) && !fault.Is(err, fault.Again) }

// Here does an operation at this node.
func (l *Log) Here(ctx context.Context, op *operate.Operation) (*pb.Result, error) {
	const name fault.Op = "side.Here"
	if r := l.done.get(op.Client, op.Number); r != nil {
		return r, nil
	}
	p := l.o.Published(op.Slice)
	if !p.IsCopy(l.o.Clock()) {
		return nil, fault.E(fault.NotActive, name, "", "this node has no copy of the slice beside its active")
	}
	if l.size() > l.o.Bytes {
		return nil, fault.E(fault.NoSpace, name, "", "the side log is full until the active can be reached: side_log_bytes bounds it")
	}
	for {
		s, k, err := l.of(op.Slice)
		if err != nil {
			return nil, err
		}
		r, did, again, err := l.operate(ctx, s, k, op)
		if again {
			continue
		}
		if err == nil && len(did.changes) > 0 {
			l.copyTo(ctx, op.Slice, s, did)
			l.done.put(op.Client, op.Number, r)
			l.wakeUp()
		}
		return r, err
	}
}

func (l *Log) operate(ctx context.Context, s *slice, k *kept, op *operate.Operation) (r *pb.Result, did part, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, part{}, true, nil
	}
	id := logID{op.Slice, l.o.Self}
	side := l.side(s, id)
	c := tree.Context{Slice: op.Slice, Serial: s.next(l.serialNow()), Time: l.o.HLC.Now(), Node: l.o.Self, Client: op.Client, Number: op.Number,
		Principal: op.Principal, Trusted: op.Trusted, OnlyMade: op.OnlyMade}
	out, changes := side.Evaluate(l.o.Nodes, c, op.Op, op.Body, l.o.Random)
	switch {
	case fault.Is(out.Err, fault.NotActive):
		return &pb.Result{Kind: uint32(fault.TimedOut), Message: "only the slice's active does this, and it is away"}, part{}, false, nil
	case out.Err != nil:
		return nil, part{}, false, out.Err
	case !out.Done():
		return out.Result, part{}, false, nil
	}
	needs, err := chunk.Addresses(out.Needs)
	if err != nil {
		return nil, part{}, false, err
	}
	if missing := l.o.Chunks.Missing(nil, needs); len(missing) > 0 {
		return &pb.Result{Kind: uint32(fault.Missing), Message: fault.Missing.String()}, part{}, false, nil
	}
	if err := l.keepContent(ctx, out.Inline); err != nil {
		return nil, part{}, false, err
	}
	if err := k.put(id, changes); err != nil {
		return nil, part{}, false, err
	}
	did = part{s.serial, c.Serial, changes}
	s.serial = c.Serial
	side.Apply(changes)
	return out.Result, did, false, nil
}

// keepContent writes the chunks that came with an operation to the disk.
func (l *Log) keepContent(ctx context.Context, inline []tree.Chunk) error {
	if len(inline) == 0 {
		return nil
	}
	list, bodies := make([]chunk.Address, len(inline)), make([][]byte, len(inline))
	for i := range inline {
		list[i], bodies[i] = inline[i].Address, inline[i].Data
	}
	return l.o.Chunks.Put(ctx, list, bodies)
}
