package operate

import (
	"fmt"
	"log/slog"
	"slices"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/store"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
)

// flush carries out what the core wants, in the order that it asks for, until
// it wants nothing more, or something fails.
func (l *Loop) flush() {
	for !l.broken.Load() {
		out := l.o.Core.Flush(l.now)
		if !out.Empty() {
			l.carryOut(out)
		}
		if len(l.retry) == 0 {
			return
		}
		again := l.retry
		l.retry = nil
		for _, op := range again {
			l.operate(op)
		}
	}
}

// carryOut stops at the first step that fails: those behind it would count on it.
func (l *Loop) carryOut(out *replica.Outputs) {
	if err := l.journal(out.Records); err != nil {
		l.fail(err)
		return
	}
	l.out.send(out.Messages)
	answerEarly(l, out.Early)
	for i := range out.Leases {
		e := &out.Leases[i]
		if s := l.slices[e.Slice]; s != nil && s.role == replica.RoleLeading && s.ready && s.completing == 0 {
			s.pub.until.Store(int64(e.Until))
		}
	}
	if err := l.apply(out.Applied); err != nil {
		l.fail(err)
		return
	}
	l.reply(out.Replies)
	for i := range out.Swaps {
		l.o.Helpers.Swap(out.Swaps[i])
	}
	for i := range out.Reads {
		l.o.Helpers.Read(out.Reads[i])
	}
	for i := range out.Transfers {
		l.o.Helpers.Transfer(out.Transfers[i])
	}
	for i := range out.Roles {
		l.role(&out.Roles[i])
	}
	for i := range out.Events {
		e := &out.Events[i]
		l.o.Logger.Info("slice", logattr.Slice(e.Slice), logattr.Epoch(e.Epoch), logattr.Node(e.Node), slog.String("what", e.What))
	}
}

// gatherBytes is the size of a write of the log up to which events gather
// behind it; behind a larger one they would wait too long.
const gatherBytes = 128 << 10

func size(records []replica.Record) int {
	n := 0
	for i := range records {
		if e := records[i].Entry; e != nil {
			n += len(e.Data)
		}
	}
	return n
}

// journal appends the records, and has the chunks fetched that entries name
// and this node lacks.
func (l *Loop) journal(records []replica.Record) error {
	if len(records) == 0 {
		return nil
	}
	last := records[len(records)-1].Position
	small := size(records) <= gatherBytes && !plant.On(plant.LoopAckUnsynced)
	if small {
		l.in.hold()
	}
	l.appended.Add(1)
	if plant.On(plant.LoopAckUnsynced) {
		l.in.put(event{kind: eventPersisted, position: last})
	}
	err := l.o.Disk.Append(records, func(err error) {
		if err != nil {
			l.fail(err)
			return
		}
		l.written.Add(1)
		if plant.On(plant.LoopAckUnsynced) {
			return // it was said before
		}
		done := event{kind: eventPersisted, position: last}
		if small {
			l.in.release(done)
		} else {
			l.in.put(done)
		}
	})
	if err != nil {
		return fault.Wrap(fault.IO, "operate.journal", string(l.o.Self), err)
	}
	for i := range records {
		if e := records[i].Entry; e != nil && len(e.Chunks) > 0 {
			l.hold(e)
		}
	}
	return nil
}

// apply brings committed entries into the metadata, all in one batch.
func (l *Loop) apply(applied []replica.Apply) error {
	if len(applied) == 0 {
		return nil
	}
	b := l.o.Meta.NewBatch()
	for i := range applied {
		var err error
		if b, err = l.applySlice(b, &applied[i]); err != nil {
			b.Abandon()
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return err
	}
	for i := range applied {
		l.afterApply(&applied[i])
	}
	return nil
}

// applySlice brings a slice's entries into a batch. It returns the batch that is to be
// committed, which may be another one.
func (l *Loop) applySlice(b *meta.Batch, a *replica.Apply) (*meta.Batch, error) {
	s := l.slice(a.Slice)
	for i, e := range a.Entries {
		invariant.Equal(invariant.Violation{Rule: invariant.ApplyFollows, Slice: a.Slice, Serial: e.Serial, File: store.MetaDir,
			Want: uint64(s.taken) + 1, Got: uint64(e.Serial)})
		s.taken = e.Serial
		mutations, inline, err := contentOf(s, e)
		if err == nil && slices.ContainsFunc(mutations, func(m tree.Mutation) bool { return tree.IsForgetting(&m) }) {
			b, err = applyFirst(l, b, a.Entries[:i])
		}
		if err == nil {
			err = l.noteUnheld(b, s, e)
		}
		if err == nil {
			err = l.applyEntry(b, s, e, mutations, inline)
		}
		if err != nil {
			return b, err
		}
		if s.incoming != nil {
			s.incoming.reached(replica.EntryID{Serial: e.Serial, Epoch: e.Epoch})
		}
	}
	return b, b.SetApplied(a.Slice, a.Entries[len(a.Entries)-1].Serial)
}

// applyFirst commits what a batch has, with these entries of a slice the last in it, and
// returns an empty one: the entry behind them looks at what the metadata has.
func applyFirst(l *Loop, b *meta.Batch, entries []*replica.Entry) (*meta.Batch, error) {
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		if err := b.SetApplied(last.Slice, last.Serial); err != nil {
			return b, err
		}
	}
	if b.Empty() {
		return b, nil
	}
	if err := b.Commit(); err != nil {
		return b, err
	}
	return l.o.Meta.NewBatch(), nil
}

// contentOf returns what an entry changes, and the chunks that it carries.
func contentOf(s *slice, e *replica.Entry) ([]tree.Mutation, []tree.Chunk, error) {
	if len(e.Data) == 0 || plant.On(plant.LoopSkipsApply) && s.proposed[e.Serial] == nil && e.Serial%41 == 0 {
		return nil, nil, nil
	}
	if op := s.proposed[e.Serial]; op != nil {
		return op.outcome.Mutations, op.outcome.Inline, nil
	}
	mutations, inline, err := tree.DecodeData(e.Data)
	return mutations, inline, fault.Wrap(fault.Corrupt, "operate.apply", fmt.Sprintf("slices/%d", s.id), err)
}

func (l *Loop) applyEntry(b *meta.Batch, s *slice, e *replica.Entry, mutations []tree.Mutation, inline []tree.Chunk) error {
	if len(mutations) == 0 && len(inline) == 0 {
		return nil
	}
	if s.incoming != nil {
		mutations = s.incoming.missing(mutations, e.Serial)
	}
	if err := ApplyEntry(b, l.o.Chunks, e, mutations, inline); err != nil {
		return err
	}
	l.holds.applied(s.id, mutations)
	if l.o.Dropped != nil {
		for i := range mutations {
			if a, ok := tree.DroppedRef(&mutations[i]); ok {
				l.o.Dropped(a)
			}
		}
	}
	if err := l.o.HLC.Observe(e.Time); err != nil && !s.ahead {
		s.ahead = true // once for each slice
		l.o.Logger.Warn("the times of a slice are ahead of this node's clock", logattr.Slice(s.id), logattr.Err(err))
	}
	return nil
}

// ApplyEntry brings one committed entry into a batch and its chunks to the
// packs. For an entry that forgets versions the batch must be empty.
func ApplyEntry(b *meta.Batch, chunks Chunks, e *replica.Entry, mutations []tree.Mutation, inline []tree.Chunk) error {
	if len(inline) > 0 {
		if err := chunks.PutInline(inline); err != nil {
			return err
		}
	}
	for i := range mutations {
		m := &mutations[i]
		if tree.IsForgetting(m) {
			f, err := tree.ForgottenOf(m)
			if err == nil {
				err = b.Forget(e.Slice, f.From, f.To, RetainedOf(f.Horizon, f.Keeps))
			}
			if err != nil {
				return err
			}
			continue
		}
		at := uint64(m.Time)
		if at == 0 {
			at = uint64(e.Time)
		}
		var err error
		switch versioned := tree.Versioned(m.Key); {
		case versioned && m.Value != nil:
			err = b.Put(e.Slice, m.Key, m.Value, at)
		case versioned:
			err = b.Delete(e.Slice, m.Key, at)
		case m.Value != nil:
			err = b.Set(e.Slice, m.Key, m.Value)
		default:
			err = b.Unset(e.Slice, m.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterApply forgets what the metadata now shows, and lets go on what waited.
func (l *Loop) afterApply(a *replica.Apply) {
	s := l.slice(a.Slice)
	steps := false
	for _, e := range a.Entries {
		steps = steps || e.Client == 0
		if l.o.Committed != nil && len(e.Chunks) > 0 {
			l.o.Committed(e.Chunks)
		}
		if l.o.Pending != nil && e.Client != 0 && e.Number != 0 {
			l.o.Pending.Settled(s.id, e.Client, e.Number)
		}
		op := s.proposed[e.Serial]
		if op == nil {
			continue
		}
		shown(l, op)
		l.inline.drop(s.id, op)
		delete(s.proposed, e.Serial)
		for i := range op.outcome.Mutations {
			s.over.applied(op.outcome.Mutations[i].Key, e.Serial)
		}
	}
	last := a.Entries[len(a.Entries)-1]
	s.applied = last.Serial
	s.pub.Applied.Store(uint64(s.applied))
	s.pub.AppliedTime.Store(uint64(last.Time))
	if !s.ready {
		serve(l, s)
	}
	done := 0
	for done < len(s.answers) && s.answers[done].after <= s.applied {
		l.finish(s.answers[done].op, s.answers[done].a)
		done++
	}
	if done > 0 {
		rest := copy(s.answers, s.answers[done:])
		clear(s.answers[rest:])
		s.answers = s.answers[:rest]
	}
	if steps && len(s.parked) > 0 { // only steps of intents give locks back
		l.unpark(s)
	}
}

// role notes this node's new part in a slice.
func (l *Loop) role(r *replica.Role) {
	s := l.slice(r.Slice)
	was := s.role
	s.role = r.Kind
	if r.Kind == replica.RoleLeading && r.Row != nil {
		sayLacking(l.o.Logger, len(l.o.Core.Lacking(s.id)), was, s.row, r.Row)
	}
	if r.Row != nil {
		s.row = r.Row
		if l.o.Rows != nil {
			l.o.Rows(*r.Row)
		}
	}
	led := was == replica.RoleLeading || was == replica.RoleYielding
	if led && r.Kind != replica.RoleLeading && r.Kind != replica.RoleYielding {
		l.stepDown(s)
	}
	if r.Kind == replica.RoleLeading && was != replica.RoleLeading {
		next, _ := l.o.Core.Next(s.id)
		s.since = uint64(next) - 1
		s.notBefore = 0
		if r.Wait > 0 {
			s.notBefore = l.now + r.Wait
		}
	}
	apart := l.o.Pending != nil && beginsApart(was, r)
	if apart {
		s.completing = 1 // until it is known how many
	}
	l.publish(s)
	if apart {
		complete(l, s)
	}
	if was != r.Kind {
		l.o.Logger.Info("part in a slice", logattr.Slice(s.id), slog.String("was", was.String()), slog.String("is", r.Kind.String()), logattr.Epoch(epochOf(s.row)))
	}
	if r.Kind == replica.RoleYielding {
		l.o.Helpers.Yield(s.id)
	}
	l.o.Helpers.Role(*r, led)
	if r.Removed {
		l.o.Helpers.Removed(s.id)
	}
}

// stepDown forgets what only the active keeps.
func (l *Loop) stepDown(s *slice) {
	if !plant.On(plant.LoopKeepsOverlay) {
		s.over.clear()
	}
	for _, op := range s.proposed {
		l.inline.drop(s.id, op)
		shown(l, op)
	}
	clear(s.proposed)
	s.completing, s.again, s.passed = 0, nil, nil
	refused := Answer{Refused: &Refusal{Kind: uint32(fault.NotActive), Row: s.row, Why: "this node acts for the slice no more"}}
	for _, a := range s.answers {
		l.finish(a.op, refused)
	}
	s.answers = nil
	for _, op := range s.parked {
		l.finish(op, refused)
	}
	s.parked, s.aborted = nil, nil
	l.holds.drop(s.id)
	if !s.row.StaysActive(l.o.Self) {
		l.o.Leases.Void(s.id)
	}
}

func epochOf(row *geoconfig.SliceRow) ids.Epoch {
	if row == nil {
		return 0
	}
	return row.Epoch
}
