package operate

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/invariant"
	"cartwheel.dev/node/plant"
	"cartwheel.dev/node/replica"
)

// Run works until ctx ends, or until what it promised can no longer be kept.
// What then waits is answered as closed.
func (l *Loop) Run(ctx context.Context) {
	ticker := time.NewTicker(l.o.TickEvery)
	defer ticker.Stop()
	defer close(l.ended)
	for {
		ticked := false
		select {
		case <-ctx.Done():
			l.shut()
			return
		case <-l.in.wake:
		case <-ticker.C:
			ticked = true
		}
		l.turn(ticked)
		l.turns.Add(1)
		if l.broken.Load() {
			l.shut()
			return
		}
	}
}

// turn takes everything that waits, and carries out what follows from it.
func (l *Loop) turn(ticked bool) {
	defer invariant.Catch(l.fail)
	events := l.in.take(l.spare)
	l.now = l.o.Clock()
	if ticked {
		l.o.Core.Tick(l.now)
		l.flush()
	}
	for i := range events {
		if l.broken.Load() {
			l.dropEvents(events[i:])
			break
		}
		if events[i].kind == eventCall && i > 0 && !plant.On(plant.LoopCallsEarly) {
			l.flush() // a call finds the core and the metadata at one serial
		}
		l.step(&events[i])
	}
	clear(events)
	l.spare = events
	l.flush()
	if ticked {
		l.expireParked()
		completeAgain(l)
		l.flush()
	}
}

// step gives one event to the core.
func (l *Loop) step(e *event) {
	switch e.kind {
	case eventOperation:
		l.operate(e.op)
	case eventMessages:
		l.behind.Add(-int64(e.bytes))
		for _, m := range e.messages {
			if m.Row != nil && l.o.Rows != nil {
				l.o.Rows(*m.Row)
			}
			l.o.Core.Receive(l.now, e.from, m)
		}
	case eventPersisted:
		l.o.Core.Persisted(l.now, e.position)
	case eventHeld:
		l.held(e.slice, replica.EntryID{Serial: e.serial, Epoch: e.epoch})
	case eventRows:
		for i := range e.rows {
			l.o.Core.Learn(l.now, &e.rows[i])
		}
	case eventFreed:
		e.op.freed, e.op.holders = true, e.holders
		l.operate(e.op)
	case eventCall:
		e.call()
	}
}

// closed is the answer to what a node's loop does not take up any more.
func closed(self ids.Node) Answer {
	return Answer{Err: fault.E(fault.Closed, "operate.Loop", string(self), "the node stops")}
}

// dropEvents answers events that are not taken up any more.
func (l *Loop) dropEvents(events []event) {
	for _, e := range events {
		if e.kind == eventOperation || e.kind == eventFreed {
			l.finish(e.op, closed(l.o.Self))
		}
	}
}

// shut answers what waits when the loop ends.
func (l *Loop) shut() {
	closed := closed(l.o.Self)
	l.dropEvents(l.in.close())
	for _, op := range l.retry {
		l.finish(op, closed)
	}
	for _, op := range l.waiting {
		l.finish(op, closed)
	}
	for _, s := range l.slices {
		for _, op := range s.parked {
			l.finish(op, closed)
		}
		for _, a := range s.answers {
			l.finish(a.op, closed)
		}
	}
	l.published.Clear()
}

// Operate hands in an operation. With too many under way it is answered
// Overloaded at once; those of nodes are always taken, since clients' wait for
// them.
func (l *Loop) Operate(op *Operation) {
	if !op.Internal && !op.admitted {
		if err := l.admission.take(op); err != nil {
			op.Done(op, Answer{Err: err})
			return
		}
		op.admitted = true
	}
	if !l.in.put(event{kind: eventOperation, op: op}) {
		l.finish(op, closed(l.o.Self))
	}
}

// Receive hands in messages of a peer that the connection authenticated. While
// too many entries wait, or the log has no room, those with entries are lost:
// the active sends them again, and beacons go on.
func (l *Loop) Receive(from ids.Node, messages []*replica.Message) {
	bytes := entryBytes(messages)
	if bytes > 0 && (l.behind.Load() > int64(l.o.QueueBytes) || l.o.Disk.Room(bytes) != nil) {
		messages = slices.DeleteFunc(messages, func(m *replica.Message) bool { return len(m.Entries) > 0 })
		bytes = 0
	}
	if len(messages) == 0 {
		return
	}
	l.behind.Add(int64(bytes))
	l.in.put(event{kind: eventMessages, from: from, messages: messages, bytes: bytes})
}

// entryBytes is how much the entries of messages hold.
func entryBytes(messages []*replica.Message) int {
	n := 0
	for _, m := range messages {
		for _, e := range m.Entries {
			n += len(e.Data) + len(e.Result)
		}
	}
	return n
}

// Learn hands in slice rows.
func (l *Loop) Learn(rows []geoconfig.SliceRow) { l.in.put(event{kind: eventRows, rows: rows}) }

// Held says that an entry's chunks are on this node's disk.
func (l *Loop) Held(slice ids.Slice, serial ids.Serial, epoch ids.Epoch) {
	l.in.put(event{kind: eventHeld, slice: slice, serial: serial, epoch: epoch})
}
