package operate

import (
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// quorum is OperateRequest.sync_level for a majority.
const quorum = 0xffffffff

// operate takes an operation as far as it goes: to an answer, a proposal, or a
// wait.
func (l *Loop) operate(op *Operation) {
	s := l.slice(op.Slice)
	if refused := l.refuse(s, op.Epoch); refused != nil {
		l.finish(op, Answer{Refused: refused})
		return
	}
	if op.Client != 0 && !l.known(s, op) {
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
		Principal: op.Principal, Trusted: op.Trusted, Holders: op.holders, Closed: s.row != nil && s.row.Closed,
	}, op.Op, op.Body)
	switch out := &op.outcome; {
	case out.Err != nil:
		l.o.Logger.Error("an operation could not be evaluated", "slice", s.id, "error", out.Err)
		l.finish(op, Answer{Err: fault.Wrap(fault.IO, "operate.Evaluate", "", out.Err)})
	case out.Blocked != 0:
		l.park(s, op, out.Blocked)
	case out.Across:
		l.finish(op, Answer{Across: true})
	case !out.Done():
		l.answerLate(s, op, Answer{Result: out.Result, Epoch: s.row.Epoch})
	case !l.free(s, op):
		// The revocations' answers bring it back.
	default:
		l.propose(s, op, serial, at)
	}
}

// refuse says why this node does not act for the slice, or nil.
func (l *Loop) refuse(s *slice, epoch ids.Epoch) *Refusal {
	switch {
	case s.row == nil:
		return &Refusal{Kind: uint32(fault.NotActive), Why: "this node has no part in the slice"}
	case s.role != replica.RoleLeading:
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "this node is " + s.role.String() + " in the slice"}
	case epoch != 0 && epoch != s.row.Epoch:
		return &Refusal{Kind: uint32(fault.WrongEpoch), Row: s.row, Why: "the slice has another epoch"}
	case l.o.Core.Until(s.id) <= l.now:
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "the lease has lapsed"}
	case !l.prepared(s):
		return &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "the slice is new and being prepared"}
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
		l.wait(op, replica.Entry{Slice: s.id, Client: op.Client, Number: op.Number, Lowest: op.Lowest})
		return false
	case replica.Forgotten:
		l.finish(op, Answer{Err: fault.E(fault.Expired, "operate.Operate", "", "the operation was settled before and its result is no longer kept")})
		return false
	case replica.Unregistered:
		anew := op.Unsent && op.Lowest == op.Number
		never := op.Age > 0 && l.o.Core.Outlasts(op.Age) // its number is not the first because others were refused
		if op.Lowest > 1 && !anew && !never {
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
	mark, ready, far := l.o.Leases.Change(s.id, op.Session, touched, func(holders []uint64) {
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
	if l.o.Full(s.id) && grows(op) {
		l.finish(op, Answer{Err: fault.E(fault.NoSpace, "operate.Operate", string(l.o.Self), "the disk of the active or of a standby is full")})
		return
	}
	if err := l.room(op); err != nil {
		l.finish(op, Answer{Err: err})
		return
	}
	if missing := l.missing(s.id, out.Needs); len(missing) > 0 {
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
	if len(data) > replica.MaxEntryBytes {
		l.finish(op, Answer{Err: fault.E(fault.TooLarge, "operate.Operate", "", "the operation is too large for one entry")})
		return
	}
	l.wait(op, replica.Entry{Slice: s.id, Serial: serial, Time: at, Client: op.Client, Number: op.Number, Lowest: op.Lowest,
		Result: encoded, Data: data, Chunks: out.Needs, Level: l.level(s, op.Level)})
	if next, _ := l.o.Core.Next(s.id); next == serial {
		return // the reply says why
	}
	op.serial = serial
	op.cost.Commits, op.cost.Bytes, op.cost.Level = op.cost.Commits+1, op.cost.Bytes+len(data)+len(encoded), l.level(s, op.Level)
	s.proposed[serial] = op
	for i := range out.Mutations {
		s.over.set(out.Mutations[i].Key, out.Mutations[i].Value, serial)
	}
	l.inline.keep(s.id, op, data)
	if len(out.Needs) > 0 {
		l.o.Core.Held(l.now, s.id, serial, s.row.Epoch)
	}
}

// frameBytes is what an entry takes of the log beside its data, at most.
const frameBytes = 8 << 10

// room refuses what the log cannot take now. A step of an intent is taken all
// the same: others wait for it.
func (l *Loop) room(op *Operation) error {
	if op.Internal {
		return nil
	}
	return l.o.Disk.Room(tree.DataSize(op.outcome.Mutations, op.outcome.Inline) + frameBytes)
}

// wait proposes an entry whose reply is the operation's.
func (l *Loop) wait(op *Operation, e replica.Entry) {
	l.token++
	l.waiting[l.token] = op
	l.o.Core.Propose(l.now, replica.Proposal{Token: l.token, Entry: e})
}

// missing returns which of the addresses an entry of a slice may not name yet.
func (l *Loop) missing(id ids.Slice, addresses []byte) []chunk.Address {
	var out []chunk.Address
	for ; len(addresses) >= chunk.AddressSize; addresses = addresses[chunk.AddressSize:] {
		if a := chunk.Address(addresses[:chunk.AddressSize]); !l.inline.has(id, a) {
			out = append(out, a)
		}
	}
	return out
}

// level turns a request's sync level into a number of members.
func (l *Loop) level(s *slice, asked uint32) uint32 {
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
	o := op.Op
	return !op.Internal && (o.GetCreate() != nil || o.GetMakeObject() != nil || o.GetCommit() != nil || o.GetLink() != nil ||
		o.GetLinkName() != nil || o.GetSetXattr() != nil && !o.GetSetXattr().Remove)
}

// park keeps an operation until the intent that holds what it needs is
// settled, or until changes are allowed again.
func (l *Loop) park(s *slice, op *Operation, i tree.Intent) {
	if op.since == 0 {
		op.since = l.now
	}
	op.blocked = i
	s.parked = append(s.parked, op)
}

// unpark evaluates the parked operations of a slice again.
func (l *Loop) unpark(s *slice) {
	parked := s.parked
	s.parked = nil
	l.retry = append(l.retry, parked...)
}

// parkedFor is how long an operation waits for an intent at most; its client
// then tries again.
const parkedFor = 10_000_000_000

// expireParked answers those that waited too long, and lets time-bound ones go.
func (l *Loop) expireParked() {
	for _, s := range l.slices {
		if len(s.parked) == 0 {
			continue
		}
		keep := s.parked[:0]
		for _, op := range s.parked {
			switch {
			case op.blocked == 0 && l.now >= s.notBefore:
				l.retry = append(l.retry, op)
			case l.now-op.since > parkedFor:
				l.finish(op, Answer{Err: fault.E(fault.Again, "operate.Operate", "", "an operation over several slices holds what is needed")})
			default:
				keep = append(keep, op)
			}
		}
		clear(s.parked[len(keep):])
		s.parked = keep
	}
}

// answerLate answers an operation that changes nothing once everything that
// its evaluation saw is committed.
func (l *Loop) answerLate(s *slice, op *Operation, a Answer) {
	serial, _ := l.o.Core.Next(s.id)
	a.Serial = s.applied
	if serial-1 <= s.applied || len(s.proposed) == 0 {
		l.finish(op, a)
		return
	}
	s.answers = append(s.answers, lateAnswer{after: serial - 1, op: op, a: a})
}

// finish ends an operation.
func (l *Loop) finish(op *Operation, a Answer) {
	if op.change != 0 {
		l.o.Leases.Changed(op.change)
		op.change = 0
	}
	if op.admitted {
		op.admitted = false
		l.admission.give(op)
	}
	done := op.Done
	op.Done = nil
	a.Cost = op.cost
	if done != nil {
		done(op, a)
	}
}

// Format proposes the first entry of an empty slice; done is called with what
// became of it.
func (l *Loop) Format(id ids.Slice, wall int64, done func(error)) {
	ok := l.in.put(event{kind: eventCall, call: func() {
		s := l.slice(id)
		serial, floor := l.o.Core.Next(id)
		if s.role != replica.RoleLeading || len(s.proposed) > 0 {
			done(fault.E(fault.NotActive, "operate.Format", "", "this node does not act for the slice now"))
			return
		}
		state, err := tree.ReadState(s.view)
		if err != nil || state.Next != 0 {
			done(err)
			return
		}
		// An empty state behind a log with operations was lost, here at least.
		invariant.Check(l.o.Core.Unused(id), invariant.Violation{Rule: invariant.FormatEmpty, Slice: id, Serial: serial, File: "meta", Got: uint64(serial - 1)})
		at := l.timeAbove(floor)
		op := &Operation{Slice: id, Internal: true, Done: func(_ *Operation, a Answer) {
			if a.Refused != nil {
				a.Err = fault.E(fault.Kind(a.Refused.Kind), "operate.Format", "", a.Refused.Why)
			}
			done(a.Err)
		}}
		op.outcome.Mutations = tree.Format(tree.Context{Slice: id, Serial: serial, Time: at, Node: l.o.Self}, nil, wall)
		l.wait(op, replica.Entry{Slice: id, Serial: serial, Time: at, Data: tree.AppendData(nil, op.outcome.Mutations, nil)})
		if next, _ := l.o.Core.Next(id); next == serial {
			return
		}
		op.serial = serial
		s.proposed[serial] = op
		for _, m := range op.outcome.Mutations {
			s.over.set(m.Key, m.Value, serial)
		}
	}})
	if !ok {
		done(fault.E(fault.Closed, "operate.Format", "", "the node stops"))
	}
}

// Reset forgets what was applied of a slice whose state is copied anew; on the
// loop's goroutine only (Do, Ask).
func (l *Loop) Reset(id ids.Slice, base replica.EntryID) {
	s := l.slice(id)
	s.over.clear()
	s.applied, s.taken, s.ready = base.Serial, base.Serial, false
	s.incoming = &incoming{epoch: base.Epoch}
	clear(s.unheld)
	s.pub.Applied.Store(uint64(base.Serial))
}

// EachSlice calls f for the slices known; on the loop's goroutine only (Do, Ask).
func (l *Loop) EachSlice(f func(ids.Slice)) {
	for id := range l.slices {
		f(id)
	}
}
