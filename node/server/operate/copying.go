package operate

import (
	"fmt"
	"math"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// Reset forgets what was applied of a slice whose state is copied anew; on the
// loop's goroutine only (Do, Ask).
func (l *Loop) Reset(id ids.Slice, base replica.EntryID) {
	s := l.slice(id)
	s.over.clear()
	s.applied, s.taken, s.ready = base.Serial, base.Serial, false
	s.incoming = &incoming{epoch: base.Epoch}
	clear(s.unheld)
	s.pub.Applied.Store(uint64(base.Serial))
	s.pub.AppliedTime.Store(0)
}

// CopyPage commits the rows of a page of a slice whose state is copied here, and
// lets the log go on. On the loop's goroutine only (Do, Ask).
func (l *Loop) CopyPage(id ids.Slice, p Page) error {
	s := l.slice(id)
	in := s.incoming
	switch {
	case in == nil || !l.o.Core.TransferReady(id):
		p.Rows.Abandon()
		return fault.E(fault.Canceled, "operate.CopyPage", fmt.Sprintf("slices/%d", id), "the state is not wanted any more")
	case p.At.Serial < s.applied:
		p.Rows.Abandon()
		return fault.Errorf(fault.Corrupt, "operate.CopyPage", fmt.Sprintf("slices/%d", id), "a page of serial %d came after %d was applied", p.At.Serial, s.applied)
	}
	if err := p.Rows.Commit(); err != nil {
		return err
	}
	p.Rows = nil
	in.ahead = append(in.ahead, p)
	in.reached(replica.EntryID{Serial: s.applied, Epoch: in.epoch})
	l.o.Core.TransferHold(l.now, id, math.MaxUint64)
	return in.differs
}

// Copied reports whether all rows of a slice that is copied here show what is
// applied. On the loop's goroutine only (Do, Ask).
func (l *Loop) Copied(id ids.Slice) (bool, error) {
	in := l.slice(id).incoming
	if in == nil || !l.o.Core.TransferReady(id) {
		return false, fault.E(fault.Canceled, "operate.Copied", fmt.Sprintf("slices/%d", id), "the state is not wanted any more")
	}
	return in.all, in.differs
}

// CopyDone says that the copy of a slice's state, which began from base, is
// whole and on the disk. On the loop's goroutine only (Do, Ask).
func (l *Loop) CopyDone(id ids.Slice, base replica.Snapshot) {
	if in, _ := l.o.Core.Incomplete(id); in.Begun && in.Base == base.Serial && in.BaseEpoch == base.Epoch {
		if err := l.takeNotes(l.slice(id)); err != nil {
			l.fail(err)
			return
		}
	}
	l.o.Core.TransferDone(l.now, id, base)
	if _, incomplete := l.o.Core.Incomplete(id); !incomplete {
		l.slice(id).incoming = nil
	}
}
