package operate

import (
	"log/slog"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/replica"
)

// beginsApart reports whether a role makes this node the active after one that may
// have answered operations that are in no log here. One that handed over has not:
// everything that it ordered is here.
func beginsApart(was replica.RoleKind, r *replica.Role) bool {
	led := was == replica.RoleLeading || was == replica.RoleYielding
	return r.Kind == replica.RoleLeading && !led && r.Leases == nil && r.Wait == 0
}

// complete orders what this node kept apart from the log as a standby. Nobody else is
// served before. The caller has published that this node leads: nothing more is kept.
func complete(l *Loop, s *slice) {
	list := l.o.Pending.Of(s.id)
	s.completing = len(list)
	for _, op := range list {
		op.completes, op.Done = true, func(op *Operation, a Answer) { completed(l, op, a) }
		l.retry = append(l.retry, op)
	}
	if len(list) > 0 {
		l.o.Logger.Info("creates that the last active may have answered are being ordered", logattr.Slice(s.id), slog.Int("creates", len(list)))
	}
	serve(l, s)
}

// completed counts an operation of complete that ended. What the log has no room for
// comes back with a tick.
func completed(l *Loop, op *Operation, a Answer) {
	s := l.slice(op.Slice)
	switch {
	case a.Refused != nil || fault.Is(a.Err, fault.Closed):
		return // it stays, for the next active
	case fault.Is(a.Err, fault.Overloaded), fault.Is(a.Err, fault.NoSpace), fault.Is(a.Err, fault.Again):
		op.Done = func(op *Operation, a Answer) { completed(l, op, a) }
		s.again = append(s.again, op)
		return
	case a.Err != nil && !fault.Is(a.Err, fault.Expired):
		l.o.Logger.Error("a create that the last active may have answered could not be ordered", logattr.Slice(s.id), logattr.Err(a.Err))
	}
	l.o.Pending.Settled(op.Slice, op.Client, op.Number)
	if op.passed {
		if s.passed[op.Client]--; s.passed[op.Client] == 0 {
			delete(s.passed, op.Client)
		}
		return
	}
	s.completing--
	serve(l, s)
}

// pass lets others than its client be served though an operation of complete waits for
// an intent, which may need this slice to go on.
func pass(l *Loop, s *slice, op *Operation) {
	if !op.completes || op.passed {
		return
	}
	op.passed = true
	if s.passed == nil {
		s.passed = map[uint64]int{}
	}
	s.passed[op.Client]++
	s.completing--
	serve(l, s)
}

// serve publishes until when this node may act for a slice, once it may.
func serve(l *Loop, s *slice) {
	if s.role == replica.RoleLeading && serves(l, s) {
		s.pub.until.Store(int64(l.o.Core.Until(s.id)))
	}
}

// serves reports whether the metadata has what clients may know of.
func serves(l *Loop, s *slice) bool { return s.completing == 0 && l.prepared(s) }

// completeAgain tries again what the log had no room for.
func completeAgain(l *Loop) {
	for _, s := range l.slices {
		l.retry = append(l.retry, s.again...)
		s.again = nil
	}
}
