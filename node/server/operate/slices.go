package operate

import (
	"context"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// Published returns what is known of a slice here, or nil.
func (l *Loop) Published(id ids.Slice) *Published {
	if p, ok := l.published.Load(id); ok {
		return p.(*Published)
	}
	return nil
}

// EachPublished calls f for every slice until it returns false.
func (l *Loop) EachPublished(f func(*Published) bool) {
	l.published.Range(func(_, p any) bool { return f(p.(*Published)) })
}

// slice returns the loop's part of a slice, made on first use.
func (l *Loop) slice(id ids.Slice) *slice {
	s := l.slices[id]
	if s == nil {
		over := newOverlay()
		s = &slice{id: id, over: over, view: view{over: over, base: Committed(l.o.Meta, id)},
			proposed: map[ids.Serial]*Operation{}, unheld: map[replica.EntryID]struct{}{}, pub: &Published{Slice: id}}
		l.slices[id] = s
		l.published.Store(id, s.pub)
	}
	return s
}

// Uncommitted reports whether an operation that the metadata does not show yet
// changes one of the keys.
func (l *Loop) Uncommitted(ctx context.Context, id ids.Slice, keys ...[]byte) (found bool, err error) {
	err = l.Ask(ctx, func(*replica.Node, replica.Time) {
		s := l.slice(id)
		found = slices.ContainsFunc(keys, func(key []byte) bool { _, ok := s.over.get(key); return ok })
	})
	return found, err
}

// prepared reports whether the metadata has the entry that formats the slice.
// Until then nobody is answered: what would be found missing is about to be made.
func (l *Loop) prepared(s *slice) bool {
	if !s.ready {
		state, err := tree.ReadState(Committed(l.o.Meta, s.id))
		s.ready = err == nil && state.Next != 0
	}
	return s.ready
}

// publish replaces what others see, after the role or the row changed.
func (l *Loop) publish(s *slice) {
	var until replica.Time
	if s.role == replica.RoleLeading && serves(l, s) {
		until = l.o.Core.Until(s.id)
	}
	p := NewPublished(s.id, s.role, s.row, until)
	p.Since = s.since
	p.Applied.Store(uint64(s.applied))
	p.AppliedTime.Store(s.pub.AppliedTime.Load())
	old := s.pub
	s.pub = p
	l.published.Store(s.id, p)
	old.until.Store(0) // whoever still holds the old one stops acting on it
}

// EachSlice calls f for the slices known; on the loop's goroutine only (Do, Ask).
func (l *Loop) EachSlice(f func(ids.Slice)) {
	for id := range l.slices {
		f(id)
	}
}
