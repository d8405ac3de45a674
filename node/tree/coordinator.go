package tree

import (
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// Action is something that a Coordinator wants done: a question to a slice's
// active (Asks is set, for ReadFacts there) or a step to be proposed there. A
// step with Asks may be answered with the facts as they are after it, which
// saves asking for them.
type Action struct {
	Slice ids.Slice
	Asks  []byte
	Step  *pb.Step
	// Final marks the step that decides: its entry carries the client's number
	// and Result, which a retry is answered with.
	Final  bool
	Result *pb.Result
}

// Answer is what became of an action. Err means that it is not known whether
// the action was done. Time is the hybrid time of the step's entry. Known means
// that a Final step was not run: Result is what an earlier attempt at the
// client's operation came to.
type Answer struct {
	Facts  []byte
	Result *pb.Result
	Time   hlc.Time
	Known  bool
	Err    error
}

type phase uint8

const (
	exploring phase = iota
	beginning
	preparing
	reading // under the locks
	deciding
	committing
	givingUp // the decision to give up is journaled
	aborting
	finishing
	done
)

// maxAttempts bounds how often an operation over several slices starts again
// because it met another one.
const maxAttempts = 24

// maxStale bounds how often an object that just went is looked for again.
const maxStale = 3

// Coordinator runs one operation over several slices as an intent: it reads
// without locks to learn what takes part, locks that in ascending object ID,
// reads again, evaluates, decides, and lets everybody know. It is pure: the
// server does its actions and answers. One goroutine at a time.
//
//	for !c.Done() { actions := c.Next(); ...do all of them...; c.Answer(answers) }
type Coordinator struct {
	c      Context
	op     *pb.Operation
	phase  phase
	facts  *facts
	locked *facts // that came with locks
	asks   []ask
	intent Intent
	begun  bool
	locks  []LockKey
	// participants in ascending order, and how many of them were asked to prepare.
	slices   []ids.Slice
	prepared int
	time     hlc.Time
	parts    []part
	result   *pb.Result
	outcome  *pb.Result
	again    bool
	attempts int
	stale    int
	// mayStand: a decision may be in the log, so that giving up has to be
	// journaled before others learn of it.
	mayStand  bool
	overruled bool
	ended     bool
}

// NewCoordinator starts an operation whose evaluation answered Across. The
// context is that of the evaluation; its serial does not matter.
func NewCoordinator(c Context, op *pb.Operation) *Coordinator {
	k := &Coordinator{c: c, op: op}
	k.explore()
	return k
}

// Resume goes on with an intent of a coordinator that is gone: a decided one
// is completed, another given up. Its steps must go through the slice's
// present active, which is the one that calls.
func Resume(c Context, o OpenIntent) *Coordinator {
	k := &Coordinator{c: c, intent: o.Intent, begun: true, slices: o.rec.Participants, attempts: maxAttempts, mayStand: !o.GivenUp}
	k.prepared = len(k.slices)
	if o.Decided {
		k.parts, k.time, k.phase = o.rec.Parts, o.rec.Time, committing
		k.result = &pb.Result{}
		if len(k.parts) == 0 {
			k.phase = finishing
		}
		return k
	}
	k.outcome = &pb.Result{Kind: uint32(fault.Again)}
	k.giveUp()
	return k
}

// Done reports whether the coordinator is at its end; then Result is valid.
func (k *Coordinator) Done() bool { return k.phase == done }

// Result is the operation's, for the client. Again means that other operations
// were in the way every time; TimedOut that the outcome is not known: the
// intent stays open, and whoever is active resumes it (OpenIntents).
func (k *Coordinator) Result() *pb.Result {
	if k.outcome != nil {
		return k.outcome
	}
	return k.result
}

// Intent is the intent's ID once it has begun, else 0.
func (k *Coordinator) Intent() Intent { return k.intent }

// Decided reports whether the intent was decided: its result stands, and the
// rest is telling the others.
func (k *Coordinator) Decided() bool { return k.phase > deciding && k.outcome == nil }

// Overruled reports whether a resumed intent could not be given up, because a
// decision came before: it is to be resumed once more, as it is now.
func (k *Coordinator) Overruled() bool { return k.overruled }

// Ended reports whether nothing of the intent is left.
func (k *Coordinator) Ended() bool { return k.ended }

// Next returns what to do now; the actions may be done at once.
func (k *Coordinator) Next() []Action {
	switch k.phase {
	case exploring, reading:
		return k.questions()
	case beginning:
		rec := record{Client: k.c.Client, Number: k.c.Number, Participants: k.slices}
		detail := appendLocks(appendRecord(nil, &rec), k.firstLocks())
		return []Action{k.stepTo(k.c.Slice, pb.Step_BEGIN, detail)}
	case preparing:
		s := k.slices[k.prepared]
		a := k.stepTo(s, pb.Step_PREPARE, appendLocks(nil, k.locksOf(s)))
		// What is read of a slice is locked there, or by the tree's rename lock,
		// which is the lowest and was taken first.
		if asks := k.anew(func(o ids.Slice) bool { return o == s }); 0 < len(asks) && len(asks) <= maxAsks {
			a.Asks = appendAsks(nil, k.intent, asks)
		}
		return []Action{a}
	case deciding:
		return []Action{k.decision()}
	case committing:
		out := make([]Action, len(k.parts))
		for i := range k.parts {
			out[i] = k.stepTo(k.parts[i].Slice, pb.Step_COMMIT, appendPart(nil, &k.parts[i]))
		}
		return out
	case givingUp:
		return []Action{k.stepTo(k.c.Slice, pb.Step_ABORT, nil)}
	case aborting:
		return k.aborts()
	case finishing:
		return []Action{k.stepTo(k.c.Slice, pb.Step_FINISH, nil)}
	}
	return nil
}

// aborts tell all that may hold locks. A decision that was never asked for
// cannot be in the log: the coordinator's own slice is told with the others.
func (k *Coordinator) aborts() []Action {
	var out []Action
	if !k.mayStand {
		out = append(out, k.stepTo(k.c.Slice, pb.Step_ABORT, nil))
	}
	for _, s := range k.slices[:min(k.prepared+1, len(k.slices))] {
		if s != k.c.Slice {
			out = append(out, k.stepTo(s, pb.Step_ABORT, nil))
		}
	}
	return out
}

func (k *Coordinator) stepTo(s ids.Slice, p pb.Step_Phase, detail []byte) Action {
	return Action{Slice: s, Step: &pb.Step{Intent: uint64(k.intent), Phase: p, Detail: detail, Hlc: uint64(k.time)}}
}

// firstLocks are the coordinator's own, where its slice is the lowest that
// takes part; else they are taken in their turn.
func (k *Coordinator) firstLocks() []LockKey {
	if len(k.slices) > 0 && k.slices[0] == k.c.Slice {
		return k.locksOf(k.c.Slice)
	}
	return nil
}

func (k *Coordinator) locksOf(s ids.Slice) []LockKey {
	var out []LockKey
	for _, l := range k.locks {
		if l.Object.Slice() == s {
			out = append(out, l)
		}
	}
	return out
}

// Answer takes the answers to the actions of Next, in their order.
func (k *Coordinator) Answer(answers []Answer) {
	switch k.phase {
	case exploring, reading:
		k.answerFacts(answers)
	case beginning:
		k.answerBegin(answers[0])
	case preparing:
		k.answerPrepare(answers[0])
	case deciding:
		k.answerDecision(answers[0])
	case committing:
		if allDone(answers) || plant.On(plant.IntentForgetsParts) {
			k.phase = finishing
		} else {
			k.phase = done // decided: the result stands, the rest is resumed
		}
	case givingUp:
		k.answerGiveUp(answers[0])
	case aborting:
		if allDone(answers) {
			k.phase = finishing
		} else {
			k.left()
		}
	case finishing:
		if answers[0].Err != nil && k.again {
			k.left()
			return
		}
		k.phase, k.ended = done, answers[0].Err == nil
		k.restart()
	}
}

func (k *Coordinator) answerDecision(a Answer) {
	switch {
	case a.Known && a.Err == nil:
		// It may be this intent's own, if the step was sent twice.
		k.outcome, k.mayStand = a.Result, true
		k.giveUp()
	case k.settled(a):
		k.phase = committing
		k.parts = slices.DeleteFunc(k.parts, func(p part) bool { return p.Slice == k.c.Slice })
		if len(k.parts) == 0 {
			k.phase = finishing
		}
	}
}

func (k *Coordinator) answerGiveUp(a Answer) {
	if !allDone([]Answer{a}) {
		k.overruled = a.Err == nil
		k.left()
		return
	}
	k.phase = aborting
	if len(k.Next()) == 0 {
		k.phase = finishing
	}
}

func allDone(answers []Answer) bool {
	for _, a := range answers {
		if a.Err != nil || (a.Result != nil && a.Result.Kind != 0) {
			return false
		}
	}
	return true
}

// settled ends the coordinator where a step at its own slice was not done or
// nobody knows: it must not go on, whoever is active now resumes the intent.
func (k *Coordinator) settled(a Answer) bool {
	if a.Err == nil && (a.Result == nil || a.Result.Kind == 0) {
		return true
	}
	kind := fault.TimedOut
	if a.Err != nil && !k.begun {
		kind = fault.KindOf(a.Err)
	}
	k.outcome, k.phase = &pb.Result{Kind: uint32(kind), Message: kind.String()}, done
	return false
}

func (k *Coordinator) answerBegin(a Answer) {
	if a.Err == nil && a.Result.GetKind() != 0 { // not begun: something was in the way
		k.outcome, k.phase, k.again = a.Result, done, true
		k.restart()
		return
	}
	if !k.settled(a) {
		return
	}
	k.begun, k.intent = true, NewIntent(k.c.Slice, ids.Serial(a.Result.GetSerial()))
	k.time = max(k.time, a.Time)
	k.phase = preparing
	if len(k.firstLocks()) > 0 {
		k.prepared = 1
	}
	k.afterPrepare()
}

func (k *Coordinator) answerPrepare(a Answer) {
	if a.Err != nil || a.Result.GetKind() != 0 {
		kind := fault.Kind(a.Result.GetKind())
		if a.Err != nil {
			kind = fault.KindOf(a.Err)
		}
		k.again = kind == fault.Busy || kind == fault.Again || kind == fault.Stale
		k.outcome = &pb.Result{Kind: uint32(kind), Message: kind.String()}
		k.giveUp()
		return
	}
	k.time = max(k.time, a.Time)
	k.prepared++
	if k.locked.learn(a.Facts) != nil {
		k.locked = newFacts() // they are asked for by themselves
	}
	k.afterPrepare()
}

// afterPrepare goes on, once all is locked, to read everything again that did
// not come with the locks.
func (k *Coordinator) afterPrepare() {
	if k.prepared < len(k.slices) {
		return
	}
	k.phase, k.asks = reading, k.anew(func(ids.Slice) bool { return true })
	k.facts = k.locked
	k.asks = slices.DeleteFunc(k.asks, k.facts.know)
	if len(k.asks) > maxAsks { // a long way to the root: ask as at first
		k.asks = k.seeds()
	}
}

// Told reports whether the operation's outcome stands and everybody who takes
// part has been told: only what was noted of it is left to be dropped, which
// nobody needs to wait for.
func (k *Coordinator) Told() bool {
	return k.phase == done || k.phase == finishing && !k.again
}

func (k *Coordinator) decision() Action {
	result, err := proto.Marshal(k.result)
	if err != nil { // a message of our own always encodes
		result = nil
	}
	detail := appendBytes(nil, result)
	detail = append(detail, byte(len(k.parts)))
	for i := range k.parts {
		detail = appendPart(detail, &k.parts[i])
	}
	a := k.stepTo(k.c.Slice, pb.Step_COMMIT, detail)
	a.Final, a.Result = true, k.result
	return a
}

// giveUp lets go of what was locked.
func (k *Coordinator) giveUp() {
	k.phase = aborting
	if k.mayStand {
		k.phase = givingUp
	}
}
