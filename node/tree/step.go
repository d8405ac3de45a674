package tree

import (
	"encoding/binary"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// An intent is journaled as steps. At the coordinator: BEGIN writes its record
// (and takes its locks where its slice is the lowest), COMMIT decides, applies
// its own part and keeps the others', FINISH drops the record. At a
// participant: PREPARE takes locks, COMMIT applies its part and lets go, ABORT
// lets go. ABORT at the coordinator is a decision too: the slice's log orders it
// and COMMIT, and the second of the two is refused. Every step may be repeated:
// what is done already is done.

const intentVersion = 1

// record is the coordinator's, under keyIntent.
type record struct {
	Client, Number uint64
	Participants   []ids.Slice // that may hold locks, the coordinator perhaps among them
	Decided        bool
	GivenUp        bool // decided the other way: never both
	Time           hlc.Time
	Parts          []part // once decided: what the others still have to apply
}

// The outcomes, as a coordinator's record has them.
const (
	outcomeOpen byte = iota
	outcomeDecided
	outcomeGivenUp
)

func (rec *record) outcome() byte {
	switch {
	case rec.Decided:
		return outcomeDecided
	case rec.GivenUp:
		return outcomeGivenUp
	}
	return outcomeOpen
}

// part is what one slice does at commit.
type part struct {
	Slice     ids.Slice
	Mutations []Mutation
	Deltas    []delta
	Openers   []uint64 // clients that have removed objects open, as they said themselves
}

// delta is what happens to a directory that is not locked as a whole.
type delta struct {
	Dir   ids.Object
	Links int64
	Time  int64 // mtime and ctime
}

func appendPart(dst []byte, p *part) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.Slice))
	dst = appendBytes(dst, AppendData(nil, p.Mutations, nil))
	dst = binary.AppendUvarint(dst, uint64(len(p.Deltas)))
	for _, d := range p.Deltas {
		dst = binary.BigEndian.AppendUint64(dst, uint64(d.Dir))
		dst = binary.AppendVarint(binary.AppendVarint(dst, d.Links), d.Time)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Openers)))
	for _, c := range p.Openers {
		dst = binary.BigEndian.AppendUint64(dst, c)
	}
	return dst
}

func (r *reader) part() part {
	p := part{Slice: ids.Slice(r.uint32())}
	mutations, _, err := DecodeData(r.bytes())
	p.Mutations, r.bad = mutations, r.bad || err != nil
	p.Deltas = make([]delta, r.count(10))
	for i := range p.Deltas {
		p.Deltas[i] = delta{Dir: ids.Object(r.uint64()), Links: r.varint(), Time: r.varint()}
	}
	p.Openers = make([]uint64, r.count(8))
	for i := range p.Openers {
		p.Openers[i] = r.uint64()
	}
	return p
}

func appendRecord(dst []byte, rec *record) []byte {
	dst = append(dst, intentVersion, rec.outcome())
	for _, v := range [...]uint64{rec.Client, rec.Number, uint64(rec.Time)} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	dst = binary.AppendUvarint(dst, uint64(len(rec.Participants)))
	for _, s := range rec.Participants {
		dst = binary.AppendUvarint(dst, uint64(s))
	}
	dst = binary.AppendUvarint(dst, uint64(len(rec.Parts)))
	for i := range rec.Parts {
		dst = appendPart(dst, &rec.Parts[i])
	}
	return dst
}

func (r *reader) record() record {
	if r.byte() != intentVersion {
		r.bad = true
	}
	outcome := r.byte()
	r.bad = r.bad || outcome > outcomeGivenUp
	rec := record{Decided: outcome == outcomeDecided, GivenUp: outcome == outcomeGivenUp,
		Client: r.uint64(), Number: r.uint64(), Time: hlc.Time(r.uint64())}
	rec.Participants = make([]ids.Slice, r.count(1))
	for i := range rec.Participants {
		rec.Participants[i] = ids.Slice(r.uint32())
	}
	rec.Parts = make([]part, r.count(4))
	for i := range rec.Parts {
		rec.Parts[i] = r.part()
	}
	return rec
}

// stepping is an evaluation of a step of an intent.
type stepping struct{ *txn }

// step runs one step of an intent; only nodes send them.
func (t stepping) step(op *pb.Step) error {
	if t.c.Client != 0 {
		return refusal(fault.Permission)
	}
	i := Intent(op.Intent)
	mine := i.Slice() == t.c.Slice
	if hlc.Time(op.Hlc) > t.c.Time { // versions at the intent's time come before what follows it
		return refusal(fault.ClockSkew)
	}
	switch op.Phase {
	case pb.Step_BEGIN:
		return t.begin(op.Detail)
	case pb.Step_PREPARE:
		return t.prepare(i, op.Detail)
	case pb.Step_COMMIT:
		if mine {
			return t.decide(i, hlc.Time(op.Hlc), op.Detail)
		}
		return t.commitPart(i, hlc.Time(op.Hlc), op.Detail)
	case pb.Step_ABORT:
		if mine {
			return t.giveUp(i)
		}
		_, err := t.release(i)
		return err
	case pb.Step_FINISH:
		if mine {
			return t.finishIntent(i)
		}
	}
	return refusal(fault.Invalid)
}

func (t stepping) begin(detail []byte) error {
	r := reader{data: detail}
	rec, locks := r.record(), r.locks()
	if !r.done() {
		return refusal(fault.Invalid)
	}
	i := NewIntent(t.c.Slice, t.c.Serial)
	t.put(intentKey(keyIntent, i), appendRecord(nil, &rec))
	if len(locks) == 0 {
		return nil
	}
	t.put(intentKey(keyPart, i), t.prepared(locks))
	return t.takeLocks(i, locks)
}

func (t stepping) prepare(i Intent, detail []byte) error {
	r := reader{data: detail}
	locks := r.locks()
	if !r.done() || i == 0 {
		return refusal(fault.Invalid)
	}
	key := intentKey(keyPart, i)
	_, done, err := t.view.Get(key)
	if err != nil || done {
		return err
	}
	if i.Slice() == t.c.Slice { // the coordinator's own, where it is not the lowest
		if rec, open, err := t.coordinated(i); err != nil || !open || rec.GivenUp {
			return orKind(err, fault.Stale)
		}
	}
	t.put(key, t.prepared(locks))
	if plant.On(plant.IntentTakesNoLocks) {
		return nil
	}
	return t.takeLocks(i, locks)
}

// prepared is a participant's record: when, and what is locked.
func (t stepping) prepared(locks []LockKey) []byte {
	return appendLocks(binary.BigEndian.AppendUint64(nil, uint64(t.c.Time)), locks)
}

// release drops the locks that an intent holds here; held is false where it
// holds none: the step was done before.
func (t stepping) release(i Intent) (held bool, err error) {
	key := intentKey(keyPart, i)
	value, held, err := t.view.Get(key)
	if err != nil || !held {
		return false, err
	}
	r := reader{data: value}
	r.uint64()
	locks := r.locks()
	if !r.done() {
		return false, fault.E(fault.Corrupt, "tree.Evaluate", "", "a participant's record is malformed")
	}
	t.remove(key)
	t.dropLocks(locks)
	return true, nil
}

// coordinated reads the record of an intent that this slice coordinates; open
// is false where there is none.
func (t stepping) coordinated(i Intent) (rec record, open bool, err error) {
	value, open, err := t.view.Get(intentKey(keyIntent, i))
	if err != nil || !open {
		return record{}, false, err
	}
	r := reader{data: value}
	rec = r.record()
	if !r.done() {
		return record{}, false, fault.E(fault.Corrupt, "tree.Evaluate", "", "a coordinator's record is malformed")
	}
	return rec, true, nil
}

// giveUp is the coordinator's ABORT: from here on the intent has no effect. It
// is refused where the intent is decided. An intent without a record has
// nothing left to give up: all were told its outcome.
func (t stepping) giveUp(i Intent) error {
	rec, open, err := t.coordinated(i)
	switch {
	case err != nil || !open || rec.GivenUp:
		return err
	case rec.Decided && !plant.On(plant.IntentAbortsOpen):
		return refusal(fault.Stale)
	}
	if _, err := t.release(i); err != nil {
		return err
	}
	rec.GivenUp = true
	t.put(intentKey(keyIntent, i), appendRecord(nil, &rec))
	return nil
}

// decide is the coordinator's COMMIT: from here on the intent is done.
func (t stepping) decide(i Intent, at hlc.Time, detail []byte) error {
	r := reader{data: detail}
	result := r.bytes()
	parts := make([]part, r.count(4))
	for k := range parts {
		parts[k] = r.part()
	}
	if !r.done() || proto.Unmarshal(result, t.result) != nil {
		return refusal(fault.Invalid)
	}
	rec, open, err := t.coordinated(i)
	if err != nil || !open || rec.GivenUp && !plant.On(plant.IntentAbortsOpen) {
		return orKind(err, fault.Stale)
	}
	if rec.Decided {
		return nil
	}
	rec.Decided, rec.Time = true, at
	if _, err := t.release(i); err != nil {
		return err
	}
	for k := range parts {
		if parts[k].Slice == t.c.Slice {
			if err := t.apply(&parts[k], at); err != nil {
				return err
			}
		} else {
			rec.Parts = append(rec.Parts, parts[k])
		}
	}
	t.put(intentKey(keyIntent, i), appendRecord(nil, &rec))
	return nil
}

// commitPart is a participant's COMMIT.
func (t stepping) commitPart(i Intent, at hlc.Time, detail []byte) error {
	r := reader{data: detail}
	p := r.part()
	if !r.done() || p.Slice != t.c.Slice {
		return refusal(fault.Invalid)
	}
	held, err := t.release(i)
	if err != nil || !held {
		return err
	}
	return t.apply(&p, at)
}

// apply writes a part. What was locked gets the intent's one time; directories
// that others changed meanwhile get the step's own.
func (t stepping) apply(p *part, at hlc.Time) error {
	t.c.Holders = append(t.c.Holders[:len(t.c.Holders):len(t.c.Holders)], p.Openers...)
	for _, m := range p.Mutations {
		from := len(t.mutations)
		if m.Key[0] == keyInode && m.Value != nil {
			if err := t.applyInode(m); err != nil {
				return err
			}
		} else {
			t.mutations = append(t.mutations, m)
			if m.Key[0] == keyEntry {
				t.touched = append(t.touched, Touch{Object: objectOf(m.Key), What: pb.Grant_NAMES, Name: m.Key[9:]})
			}
		}
		for k := range t.mutations[from:] {
			if key := t.mutations[from+k].Key; Versioned(key) {
				t.mutations[from+k].Time = at
			}
		}
	}
	for _, d := range p.Deltas {
		n, err := readInode(t.view, d.Dir)
		if err != nil {
			return err
		}
		if n == nil {
			return fault.E(fault.Corrupt, "tree.Evaluate", d.Dir.String(), "a directory went away below an intent")
		}
		l := t.add(n)
		l.fresh = false
		l.Nlink = uint32(int64(l.Nlink) + d.Links)
		l.Mtime, l.Ctime = max(l.Mtime, d.Time), max(l.Ctime, d.Time)
		l.Change = uint64(t.c.Serial)
	}
	return nil
}

func (t stepping) applyInode(m Mutation) error {
	n, err := DecodeInode(objectOf(m.Key), m.Value)
	if err != nil {
		return err
	}
	n.Change = uint64(t.c.Serial)
	t.touch(&loaded{Inode: n})
	if n.Nlink == 0 {
		held, err := t.holdOrHeld(n.Object)
		if err != nil {
			return err
		}
		if !held {
			return t.reapNow(n)
		}
	}
	t.put(m.Key, AppendInode(nil, n))
	return nil
}

// finishIntent drops the record of an intent whose outcome all were told.
func (t stepping) finishIntent(i Intent) error {
	rec, open, err := t.coordinated(i)
	if err != nil || !open {
		return err
	}
	invariant.Check(rec.outcome() != outcomeOpen, invariant.Violation{Rule: invariant.FinishDecided, Slice: t.c.Slice, Serial: t.c.Serial,
		Want: uint64(outcomeDecided), Got: uint64(outcomeOpen)})
	t.remove(intentKey(keyIntent, i))
	return nil
}

// OpenIntent is one that a coordinator's slice has not finished.
type OpenIntent struct {
	Intent         Intent
	Client, Number uint64
	Decided        bool
	GivenUp        bool
	rec            record
}

// Others lists the other slices that take part.
func (o *OpenIntent) Others() []ids.Slice {
	return slices.DeleteFunc(slices.Clone(o.rec.Participants), func(s ids.Slice) bool { return s == o.Intent.Slice() })
}

// Keys are those under which the steps at the intent's own slice write.
func (o *OpenIntent) Keys() [][]byte {
	return [][]byte{intentKey(keyIntent, o.Intent), intentKey(keyPart, o.Intent)}
}

// OpenIntents lists the intents that a slice coordinates and has not finished:
// a new active resumes each with Resume.
func OpenIntents(v View) ([]OpenIntent, error) {
	const op fault.Op = "tree.OpenIntents"
	var out []OpenIntent
	var bad error
	err := v.Scan([]byte{keyIntent}, []byte{keyIntent + 1}, func(key, value []byte) bool {
		r := reader{data: append([]byte(nil), value...)}
		o := OpenIntent{Intent: Intent(objectOf(key)), rec: r.record()}
		if !r.done() {
			bad = fault.E(fault.Corrupt, op, "", "a coordinator's record is malformed")
			return false
		}
		o.Client, o.Number, o.Decided, o.GivenUp = o.rec.Client, o.rec.Number, o.rec.Decided, o.rec.GivenUp
		out = append(out, o)
		return true
	})
	if err == nil {
		err = bad
	}
	return out, fault.Wrap(fault.IO, op, "", err)
}

// IsOpen reports whether the slice, as coordinator, still knows an intent.
func IsOpen(v View, i Intent) (bool, error) {
	_, ok, err := v.Get(intentKey(keyIntent, i))
	return ok, fault.Wrap(fault.IO, "tree.IsOpen", "", err)
}

// Prepared lists the intents that hold locks in this slice as a participant. A
// sweeper asks the coordinator's slice for those that stay (IsOpen); one that
// is not open there was aborted, or its PREPARE came late: it is given up with
// Step{ABORT}.
func Prepared(v View) ([]Intent, error) {
	var out []Intent
	err := v.Scan([]byte{keyPart}, []byte{keyPart + 1}, func(key, _ []byte) bool {
		out = append(out, Intent(objectOf(key)))
		return true
	})
	return out, fault.Wrap(fault.IO, "tree.Prepared", "", err)
}

// OldestPrepared returns the lowest time at which an intent that is still open
// locked something here, and whether there is any: its versions will be above
// that time, so that no time from there on may be closed.
func OldestPrepared(v View) (oldest hlc.Time, ok bool, err error) {
	err = v.Scan([]byte{keyPart}, []byte{keyPart + 1}, func(_, value []byte) bool {
		r := reader{data: value}
		if at := hlc.Time(r.uint64()); !r.bad && (!ok || at < oldest) {
			oldest, ok = at, true
		}
		return true
	})
	return oldest, ok, fault.Wrap(fault.IO, "tree.OldestPrepared", "", err)
}
