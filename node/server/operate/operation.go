package operate

import (
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
	"google.golang.org/protobuf/proto"
)

// quorum is OperateRequest.sync_level for a majority.
const quorum = 0xffffffff

// operate takes an operation as far as it goes: to an answer, a proposal, or a
// wait.
func (l *Loop) operate(op *Operation) {
	s := l.slice(op.Slice)
	if refused := l.refuse(s, op); refused != nil {
		l.finish(op, Answer{Refused: refused})
		return
	}
	if op.Client != 0 && !l.known(s, op) {
		return
	}
	if refuseAborted(l, s, op) {
		return
	}
	serial, floor := l.o.Core.Next(s.id)
	if step := op.Op.GetStep(); step != nil { // an intent's time is below that of the steps that write it
		if err := l.stepAhead(step); err != nil {
			l.finish(op, Answer{Err: err})
			return
		}
		floor = max(floor, hlc.Time(step.Hlc))
	}
	at := l.timeAbove(floor)
	client := op.Client
	if op.Internal {
		client = 0
	}
	op.outcome = tree.Evaluate(s.view, l.inline, tree.Context{
		Slice: s.id, Serial: serial, Time: at, Node: l.o.Self, Client: client, Number: op.Number,
		Principal: op.Principal, Trusted: op.Trusted, Holders: clientsOf(op), HeldBy: op.holders, OnlyMade: op.OnlyMade, Closed: s.row != nil && s.row.Closed && !op.completes, Side: op.Side,
	}, op.Op, op.Body)
	switch out := &op.outcome; {
	case out.Err != nil:
		l.o.Logger.Error("an operation could not be evaluated", logattr.Slice(s.id), logattr.Err(out.Err))
		l.finish(op, Answer{Err: fault.Wrap(fault.IO, "operate.Evaluate", "", out.Err)})
	case out.Blocked != 0:
		l.park(s, op, out.Blocked)
		pass(l, s, op)
	case out.Across:
		l.finish(op, Answer{Across: true})
	case op.Held && out.Result.Kind != 0:
		proposeRefusal(l, s, op, serial, at)
	case !out.Done():
		l.answerLate(s, op, Answer{Result: out.Result, Epoch: s.row.Epoch, NotEmpty: out.NotEmpty})
	case !l.free(s, op):
		// The revocations' answers bring it back.
	default:
		l.propose(s, op, serial, at)
	}
}

// clientsOf lists the clients that have open what an operation unlinks, where that
// is one object.
func clientsOf(op *Operation) (out []uint64) {
	if len(op.holders) == 0 || op.Op.GetBatch() != nil {
		return nil
	}
	for _, h := range op.holders {
		if !slices.Contains(out, h.Client) {
			out = append(out, h.Client)
		}
	}
	return out
}

// refuse says why this node does not act for the slice now, or nil.
func (l *Loop) refuse(s *slice, op *Operation) *Refusal {
	switch {
	case s.row == nil:
		return &Refusal{Kind: uint32(fault.NotActive), Why: "this node has no part in the slice"}
	case s.role != replica.RoleLeading:
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "this node is " + s.role.String() + " in the slice"}
	case op.Epoch != 0 && op.Epoch != s.row.Epoch:
		return &Refusal{Kind: uint32(fault.WrongEpoch), Row: s.row, Why: "the slice has another epoch"}
	case l.o.Core.Until(s.id) <= l.now:
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "the lease has lapsed"}
	case !l.prepared(s):
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "the slice is new and being prepared"}
	case (s.completing > 0 || s.passed[op.Client] > 0) && !op.completes && !op.Internal:
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "creates that the last active answered are being ordered"}
	}
	return nil
}

// known settles operations that were seen before; true: this one was not.
func (l *Loop) known(s *slice, op *Operation) bool {
	known, reply := l.o.Core.Lookup(s.id, op.Client, op.Number, l.o.HLC.Now())
	switch known {
	case replica.Done:
		if plant.On(plant.LoopRunsAgain) {
			return true
		}
		l.finish(op, Answer{Encoded: reply.Result, Serial: reply.Serial, Epoch: reply.Epoch, Time: uint64(reply.Time)})
		return false
	case replica.Pending:
		l.wait(op, replica.Proposal{Entry: replica.Entry{Slice: s.id, Client: op.Client, Number: op.Number, Lowest: op.Lowest}})
		return false
	case replica.Forgotten:
		l.finish(op, Answer{Err: fault.E(fault.Expired, "operate.Operate", "", "the operation was settled before and its result is no longer kept")})
		return false
	case replica.Unregistered:
		anew := op.Unsent && op.Lowest == op.Number
		never := op.Age > 0 && l.o.Core.Outlasts(op.Age) // its number is not the first because others were refused
		if op.Kept || op.Lowest > 1 && !anew && !never {
			l.finish(op, Answer{Err: fault.E(fault.Expired, "operate.Operate", "", "the client's registration has expired: register under a new number")})
			return false
		}
		return l.register(s, op)
	}
	return true
}

// register proposes the client's registration and reports whether it is
// ordered: the client's operations are proposed right behind it, and are
// committed no sooner.
func (l *Loop) register(s *slice, op *Operation) bool {
	if err := l.room(op); err != nil {
		l.finish(op, Answer{Err: err})
		return false
	}
	serial, floor := l.o.Core.Next(s.id)
	l.o.Core.Propose(l.now, replica.Proposal{Entry: replica.Entry{
		Slice: s.id, Serial: serial, Time: l.timeAbove(floor), Client: op.Client}})
	if next, _ := l.o.Core.Next(s.id); next == serial {
		l.finish(op, Answer{Err: fault.E(fault.Overloaded, "operate.register", "", "the slice takes no more clients now")})
		return false
	}
	s.decisive = serial
	return true
}

// maxStepAhead is how far the time of an intent may be ahead of this node's
// clock when the intent begins here. The slice then goes on behind that time, and
// the node's clock does not follow. A clock that is wrong by more is refused: its
// time would make the registrations of the slice's clients look old.
const maxStepAhead = time.Minute

// stepAhead refuses an intent whose time is too far ahead. It lets pass whatever
// ends one: an intent that is decided must be finished at each of its slices, or
// their names stay locked.
func (l *Loop) stepAhead(step *pb.Step) error {
	if step.Phase != pb.Step_BEGIN && step.Phase != pb.Step_PREPARE {
		return nil
	}
	if ahead := hlc.Time(step.Hlc).Wall().Sub(l.o.HLC.Now().Wall()); ahead > maxStepAhead {
		return fault.E(fault.ClockSkew, "operate.stepAhead", string(l.o.Self), "an operation over several slices is "+ahead.Round(time.Second).String()+
			" ahead of this node's clock: set the clocks of the nodes right")
	}
	return nil
}

// timeAbove returns a hybrid time above floor and all that this node gave. A
// slice whose times are far ahead of this node's clock stays so, since they never
// fall; the node's clock, which all its other slices go by, does not follow.
func (l *Loop) timeAbove(floor hlc.Time) hlc.Time {
	at := l.o.HLC.Now()
	if at > floor {
		return at
	}
	if l.o.HLC.Observe(floor) != nil {
		return floor + 1
	}
	return l.o.HLC.Now()
}

// free reports whether no other session holds what the operation changes. If
// one does, it is asked to give it up, and the operation comes back then.
func (l *Loop) free(s *slice, op *Operation) bool {
	touched := op.outcome.Touched
	if len(touched) == 0 {
		return true
	}
	if l.now < s.notBefore {
		l.park(s, op, 0)
		return false
	}
	if op.change != 0 {
		if op.freed && covers(op.touched, touched) {
			return true
		}
		l.o.Leases.Changed(op.change) // the state moved on: it changes other things now
		op.change = 0
	}
	// touched shares memory with the request at most, which outlives the mark.
	mark, ready, far := l.o.Leases.Change(s.id, op.Session, touched, func(holders []tree.Holder) {
		l.in.put(event{kind: eventFreed, op: op, holders: holders})
	})
	op.change, op.freed, op.touched = mark, ready, touched
	op.cost.Asked, op.cost.AskedFar = op.cost.Asked || !ready, op.cost.AskedFar || far
	return ready
}

// covers reports whether the marks made for a cover what b asks for.
func covers(a, b []tree.Touch) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Object != b[i].Object || a[i].What != b[i].What || a[i].Unlinked != b[i].Unlinked || string(a[i].Name) != string(b[i].Name) {
			return false
		}
	}
	return true
}

// propose gives the core the entry that makes an evaluated operation true.
func (l *Loop) propose(s *slice, op *Operation, serial ids.Serial, at hlc.Time) {
	out := &op.outcome
	if op.Admit != nil {
		if err := op.Admit(op); err != nil {
			l.finish(op, Answer{Err: err})
			return
		}
	}
	if err := l.mayHold(s, op); err != nil {
		l.finish(op, Answer{Err: err})
		return
	}
	if l.o.Full(s.id) && grows(op) && !op.completes {
		l.finish(op, Answer{Err: fault.E(fault.NoSpace, "operate.Operate", string(l.o.Self), "the disk of the active or of a standby is full")})
		return
	}
	if err := l.room(op); err != nil {
		l.finish(op, Answer{Err: err})
		return
	}
	if missing := l.inline.missing(s.id, out.Needs); len(missing) > 0 {
		l.finish(op, Answer{Err: fault.Errorf(fault.Missing, "operate.Operate", missing[0].String(), "%d chunks that the operation names are not here: put them first", len(missing))})
		return
	}
	var encoded []byte
	if op.Client != 0 {
		var err error
		if encoded, err = proto.Marshal(out.Result); err != nil {
			l.finish(op, Answer{Err: fault.Wrap(fault.Invalid, "operate.Operate", "", err)})
			return
		}
	}
	data := tree.AppendData(make([]byte, 0, tree.DataSize(out.Mutations, out.Inline)), out.Mutations, out.Inline)
	if len(data)+op.outcome.Beside > replica.MaxEntryBytes {
		l.finish(op, Answer{Err: fault.E(fault.TooLarge, "operate.Operate", "", "the operation is too large for one entry")})
		return
	}
	if len(out.Alone) > 0 && op.Session != 0 {
		op.born = l.o.Leases.Born(op.Session, s.row.Epoch, out.Alone)
	}
	l.wait(op, replica.Proposal{Early: op.Early != nil, After: s.earlyAfter(op), Entry: replica.Entry{
		Slice: s.id, Serial: serial, Time: at, Client: op.Client, Number: op.Number, Lowest: op.Lowest,
		Result: encoded, Data: data, Chunks: out.Needs, Level: s.level(op.Level)}})
	if next, _ := l.o.Core.Next(s.id); next == serial {
		return // the reply says why
	}
	op.serial = serial
	op.cost.Commits, op.cost.Bytes, op.cost.Level = op.cost.Commits+1, op.cost.Bytes+len(data)+len(encoded), s.level(op.Level)
	s.proposed[serial] = op
	if isDecisive(op.Op) {
		s.decisive = serial
	}
	for i := range out.Mutations {
		s.over.set(out.Mutations[i].Key, out.Mutations[i].Value, serial)
	}
	l.inline.keep(s.id, op, data)
	if len(out.Needs) > 0 {
		l.o.Core.Held(l.now, s.id, serial, s.row.Epoch)
	}
}

// proposeRefusal gives the core the entry that remembers an operation as refused.
func proposeRefusal(l *Loop, s *slice, op *Operation, serial ids.Serial, at hlc.Time) {
	err := l.room(op)
	var encoded []byte
	if err == nil {
		encoded, err = proto.Marshal(op.outcome.Result)
	}
	if err != nil {
		l.finish(op, Answer{Err: err})
		return
	}
	l.wait(op, replica.Proposal{Entry: replica.Entry{Slice: s.id, Serial: serial, Time: at, Client: op.Client, Number: op.Number, Lowest: op.Lowest, Result: encoded}})
	if next, _ := l.o.Core.Next(s.id); next == serial {
		return // the reply says why
	}
	op.serial = serial
	s.proposed[serial] = op
}

// mayHold answers Overloaded where the operation's user has too many holds. What
// is ordered and not applied yet does not count.
func (l *Loop) mayHold(s *slice, op *Operation) error {
	h := l.holds
	if op.User == "" || h.limit == 0 || !method.Any(op.Op, takesHold) {
		return nil
	}
	if err := h.count(s.id, Committed(l.o.Meta, s.id)); err != nil {
		return err
	}
	h.belongs(op.Client, op.User)
	if n := h.users[op.User]; n >= h.limit {
		return fault.Errorf(fault.Overloaded, "operate.Operate", op.User,
			"%d files that this user's clients have open count here, and %d may: close some; the node's option is max_user_holds", n, h.limit)
	}
	return nil
}

// frameBytes is what an entry takes of the log beside its data, at most.
const frameBytes = 8 << 10

// room refuses what the log cannot take now. A step of an intent is taken all
// the same: others wait for it.
func (l *Loop) room(op *Operation) error {
	if op.Internal {
		return nil
	}
	return l.o.Disk.Room(tree.DataSize(op.outcome.Mutations, op.outcome.Inline) + op.outcome.Beside + frameBytes)
}

// wait makes a proposal whose reply is the operation's.
func (l *Loop) wait(op *Operation, p replica.Proposal) {
	l.token++
	l.waiting[l.token] = op
	p.Token = l.token
	l.o.Core.Propose(l.now, p)
}

// level turns a request's sync level into a number of members.
func (s *slice) level(asked uint32) uint32 {
	normal := uint32(0)
	for i := range s.row.Members {
		if s.row.Members[i].State == geoconfig.Normal {
			normal++
		}
	}
	switch {
	case asked == quorum:
		return normal/2 + 1
	case asked >= normal:
		return 0
	}
	return asked
}

// grows reports whether an operation needs space: with a full disk, what frees
// some goes on.
func grows(op *Operation) bool {
	return !op.Internal && method.Any(op.Op, func(o *pb.Operation) bool {
		return o.GetCreate() != nil || o.GetMakeObject() != nil || o.GetCommit() != nil || o.GetLink() != nil ||
			o.GetLinkName() != nil || o.GetSetXattr() != nil && !o.GetSetXattr().Remove
	})
}
