package tree

import (
	"errors"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

func (k *Coordinator) explore() {
	k.phase, k.facts, k.locked, k.again = exploring, newFacts(), newFacts(), false
	k.locks, k.slices, k.prepared, k.parts, k.begun, k.time, k.intent = nil, nil, 0, nil, false, 0, 0
	k.asks = k.seeds()
}

// seeds are the questions that any evaluation of the operation will ask.
func (k *Coordinator) seeds() []ask {
	key := func(o uint64) ask { return ask{askKey, objectKey(keyInode, ids.Object(o))} }
	name := func(o uint64, n []byte) ask { return ask{askKey, nameKey(keyEntry, ids.Object(o), n)} }
	switch o := k.op.Op.(type) {
	case *pb.Operation_Unlink:
		return []ask{key(o.Unlink.Dir), name(o.Unlink.Dir, o.Unlink.Name)}
	case *pb.Operation_Link:
		return []ask{key(o.Link.Dir), name(o.Link.Dir, o.Link.Name), key(o.Link.Object)}
	case *pb.Operation_Rename:
		r := o.Rename
		return []ask{key(r.Dir), name(r.Dir, r.Name), {askChain, objectKey(keyInode, ids.Object(r.NewDir))}, name(r.NewDir, r.NewName)}
	}
	return nil
}

func (k *Coordinator) questions() []Action {
	by := map[ids.Slice][]ask{}
	for _, a := range k.asks {
		by[a.slice()] = append(by[a.slice()], a)
	}
	var out []Action
	for s, asks := range by {
		out = append(out, Action{Slice: s, Asks: appendAsks(nil, k.intent, asks)})
	}
	slices.SortFunc(out, func(a, b Action) int { return int(a.Slice) - int(b.Slice) })
	return out
}

// left ends what cannot be begun again here, because letting go did not get
// through: what stood in the way says nothing about the operation.
func (k *Coordinator) left() {
	k.phase = done
	if k.again {
		k.outcome = &pb.Result{Kind: uint32(fault.TimedOut), Message: fault.TimedOut.String()}
	}
}

func (k *Coordinator) answerFacts(answers []Answer) {
	for _, a := range answers {
		err := a.Err
		if err == nil {
			err = k.facts.learn(a.Facts)
		}
		if err != nil {
			if k.again = fault.Is(err, fault.Busy); k.again && !k.begun && k.restart() {
				return
			}
			k.refuse(fault.KindOf(err))
			return
		}
	}
	k.asks = nil
	k.evaluate()
}

// evaluate runs the operation over the facts, until it asks for no more.
func (k *Coordinator) evaluate() {
	t := txn{view: k.facts, c: &k.c, now: k.op.TimeNs, wide: true, result: &pb.Result{}}
	if t.now == 0 {
		t.now = int64(k.c.Time)
	}
	t.inodes = t.room[:0]
	c := k.c // holders are the participants' business
	c.Holders, c.Serial = nil, ids.Serial(ids.Object(k.intent).Number())
	t.c = &c
	err := t.dispatch(k.op, nil)
	if err == nil {
		err = t.finish()
	}
	var q unknown
	var refused refusal
	switch {
	case errors.As(err, &q):
		k.asks = append(k.asks, k.follow(ask(q))...)
	case errors.As(err, &refused):
		k.refuse(fault.Kind(refused))
	case err != nil:
		k.refuse(fault.Corrupt)
	case k.phase == exploring:
		k.plan(&t)
	default:
		k.decide(&t)
	}
}

// follow widens a question to what will be asked next, so that one round trip
// answers it: a child's emptiness with its record, the way to the root in one.
func (k *Coordinator) follow(a ask) []ask {
	if a.kind != askKey || a.key[0] != keyInode {
		return []ask{a}
	}
	if _, seen := k.facts.values[string(a.key)]; seen {
		return []ask{a}
	}
	out := []ask{{askChain, a.key}}
	return append(out, ask{askEmpty, a.key})
}

// refuse ends the operation with a failure. What was met without locks may be
// out of date: where the object had just gone, it is looked at again.
func (k *Coordinator) refuse(kind fault.Kind) {
	k.outcome = &pb.Result{Kind: uint32(kind), Message: kind.String()}
	if k.begun {
		k.giveUp()
		return
	}
	k.phase = done
	if kind == fault.Stale && k.stale < maxStale {
		k.stale++
		k.again = true
		k.restart()
	}
}

// restart begins again from the start, unless that was tried often enough.
func (k *Coordinator) restart() bool {
	if !k.again || k.attempts >= maxAttempts {
		return false
	}
	k.outcome = nil
	k.attempts++
	k.explore()
	return true
}

// anew are the questions whose answers were learned without locks, to some
// slices.
func (k *Coordinator) anew(of func(ids.Slice) bool) (out []ask) {
	for key := range k.facts.values {
		if a := (ask{askKey, []byte(key)}); of(a.slice()) {
			out = append(out, a)
		}
	}
	for key := range k.facts.empty {
		if a := (ask{askEmpty, []byte(key)}); of(a.slice()) {
			out = append(out, a)
		}
	}
	return out
}
