package tree

import (
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// maxDepth bounds the walk to the root; no path of the kernels is deeper.
const maxDepth = 8192

// move is a rename while it is checked.
type move struct {
	*txn
	op               *pb.Rename
	from, to         *loaded
	source, target   *loaded // target nil: the new name is free
	fromOld, toOld   []byte  // what the names' keys hold
	acrossDirs       bool
	sourceUp, tgtUp  bool // a directory gets another parent
	sourceE, targetE Entry
}

// rename moves a name, replaces or exchanges another. The order of the checks
// is that of Linux: names, ancestry, permissions, then the directories' state.
func (t *txn) rename(op *pb.Rename) error {
	m := &move{txn: t, op: op}
	if done, err := m.find(); err != nil || done {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := m.needTreeLock(); err != nil {
		return err
	}
	if op.Exchange {
		return m.exchange()
	}
	return m.replace()
}

// find looks both names up; done is set where there is nothing to do.
func (m *move) find() (done bool, err error) {
	op := m.op
	if err = checkName(op.Name); err == nil {
		err = checkName(op.NewName)
	}
	if err == nil && op.NoReplace && op.Exchange {
		err = refusal(fault.Invalid)
	}
	if err != nil {
		return false, err
	}
	if m.from, err = m.directory(ids.Object(op.Dir)); err != nil {
		return false, err
	}
	if m.to, err = m.directory(ids.Object(op.NewDir)); err != nil {
		return false, err
	}
	m.acrossDirs = m.from != m.to
	if err = m.access(m.from, mayExec); err == nil {
		err = m.access(m.to, mayExec)
	}
	if err != nil {
		return false, err
	}
	if m.from.Nlink == 0 || m.to.Nlink == 0 { // removed: no name is found there
		return false, refusal(fault.NotFound)
	}
	var found bool
	if m.sourceE, m.fromOld, found, err = m.lookup(m.from.Object, op.Name); err != nil {
		return false, err
	}
	if !found {
		return m.isDone()
	}
	if m.targetE, m.toOld, found, err = m.lookup(m.to.Object, op.NewName); err != nil {
		return false, err
	}
	switch {
	case found && op.NoReplace:
		return false, refusal(fault.Exists)
	case !found && op.Exchange:
		return false, refusal(fault.NotFound)
	case !m.isExpected():
		return false, refusal(fault.Stale)
	}
	if m.source, err = m.inode(m.sourceE.Object); err != nil {
		return false, err
	}
	if found {
		if m.target, err = m.inode(m.targetE.Object); err != nil {
			return false, err
		}
	}
	if err = m.checkAncestry(); err != nil {
		return false, err
	}
	if m.source == m.target { // two names of one object: nothing happens
		m.result.Attr, m.result.Dir, m.result.NewDir = m.source.Attr(), m.from.Attr(), m.to.Attr()
		m.result.Existed = true
		return true, nil
	}
	return false, nil
}

// isDone is for a name that is not there: at a side it may have been moved already, by the
// active, whose answer was lost.
func (m *move) isDone() (bool, error) {
	e, _, found, err := m.lookup(m.to.Object, m.op.NewName)
	if err == nil && !(found && m.c.Side && m.op.Object != 0 && uint64(e.Object) == m.op.Object) {
		err = refusal(fault.NotFound)
	}
	if err != nil {
		return false, err
	}
	moved, err := m.inode(e.Object)
	if err != nil {
		return false, err
	}
	m.result.Attr, m.result.Dir, m.result.NewDir = moved.Attr(), m.from.Attr(), m.to.Attr()
	return true, nil
}

// isExpected reports whether the names mean what the caller saw, where it says
// so: a kernel moves what it took them to mean.
func (m *move) isExpected() bool {
	return (m.op.Object == 0 || m.op.Object == uint64(m.sourceE.Object)) &&
		(m.op.Target == 0 || m.op.Target == uint64(m.targetE.Object))
}

// checkAncestry refuses to move a directory below itself, or onto one of its
// ancestors.
func (m *move) checkAncestry() error {
	m.sourceUp = m.acrossDirs && m.source.IsDir()
	m.tgtUp = m.acrossDirs && m.op.Exchange && m.target.IsDir()
	if m.source.IsDir() {
		if m.source.Object == m.to.Object {
			return refusal(fault.Invalid)
		}
		if m.sourceUp {
			if below, err := m.isBelow(m.to.Inode, m.source.Object); err != nil || below {
				return orKind(err, fault.Invalid)
			}
		}
	}
	if m.target == nil || !m.target.IsDir() || m.target == m.source {
		return nil
	}
	kind := fault.NotEmpty
	if m.op.Exchange {
		kind = fault.Invalid
	}
	if m.target.Object == m.from.Object {
		return refusal(kind)
	}
	if m.acrossDirs && m.op.Exchange {
		if below, err := m.isBelow(m.from.Inode, m.target.Object); err != nil || below {
			return orKind(err, kind)
		}
	}
	return nil // an ancestor of the source is not empty: dropLink says so
}

func orKind(err error, kind fault.Kind) error {
	if err != nil {
		return err
	}
	return refusal(kind)
}

// isBelow walks from a directory to the root and reports whether it meets an
// ancestor. The records of the way are read without being locked: no
// directory gets another parent while the caller holds the tree lock, and one
// that just got another, of which its slice has not heard yet, is still held.
func (t *txn) isBelow(d *Inode, ancestor ids.Object) (bool, error) {
	for range maxDepth {
		if d.Object == ancestor {
			return true, nil
		}
		if d.Parent == d.Object || d.Parent == 0 {
			return false, nil
		}
		if err := t.local(d.Parent); err != nil {
			return false, err
		}
		up, err := readInode(t.view, d.Parent)
		if err != nil {
			return false, err
		}
		if up == nil {
			return false, refusal(fault.Stale)
		}
		d = up
	}
	return false, refusal(fault.Loop)
}

// check checks permissions as the kernels do.
func (m *move) check() error {
	if err := m.mayRemove(m.from, m.source, m.source.IsDir()); err != nil {
		return err
	}
	var err error
	switch {
	case m.target == nil:
		err = m.mayAdd(m.to)
	case m.op.Exchange:
		err = m.mayRemove(m.to, m.target, m.target.IsDir())
	default:
		err = m.mayRemove(m.to, m.target, m.source.IsDir())
	}
	if err == nil && m.sourceUp { // its ".." changes
		err = m.access(m.source, mayWrite)
	}
	if err == nil && m.tgtUp {
		err = m.access(m.target, mayWrite)
	}
	return err
}

// needTreeLock makes a move of a directory to another parent an intent, unless
// everything happens in the root's slice, where the lock itself is.
func (m *move) needTreeLock() error {
	if m.wide || (!m.sourceUp && !m.tgtUp) {
		return nil
	}
	if m.c.Slice != ids.RootSlice {
		return acrossSlices{}
	}
	return m.unlocked(treeLock, nil)
}

func (m *move) replace() error {
	toLinks, fromLinks := 0, 0
	if m.source.IsDir() {
		fromLinks, toLinks = -1, 1
	}
	m.opener(m.op.Open)
	if m.target != nil {
		links, err := m.dropLink(m.target)
		if err != nil {
			return err
		}
		toLinks += links
		m.result.Removed = uint64(m.target.Object)
	}
	if toLinks > 0 && m.acrossDirs && m.to.Nlink >= MaxLinks {
		return refusal(fault.TooManyLinks)
	}
	m.dropEntry(m.from.Object, m.op.Name, m.fromOld)
	m.setEntry(m.to.Object, m.op.NewName, m.toOld, m.source.Object, m.source.Mode)
	m.reparent(m.source, m.from, m.to)
	m.change(m.source)
	if m.acrossDirs {
		m.touchDir(m.from, fromLinks)
		m.touchDir(m.to, toLinks)
	} else {
		m.touchDir(m.from, fromLinks+toLinks)
	}
	m.moved()
	return nil
}

func (m *move) exchange() error {
	links := 0 // what the directories exchange
	if m.source.IsDir() {
		links++
	}
	if m.target.IsDir() {
		links--
	}
	if m.acrossDirs && ((links > 0 && m.to.Nlink >= MaxLinks) || (links < 0 && m.from.Nlink >= MaxLinks)) {
		return refusal(fault.TooManyLinks)
	}
	m.setEntry(m.from.Object, m.op.Name, m.fromOld, m.target.Object, m.target.Mode)
	m.setEntry(m.to.Object, m.op.NewName, m.toOld, m.source.Object, m.source.Mode)
	m.reparent(m.source, m.from, m.to)
	m.reparent(m.target, m.to, m.from)
	m.change(m.source)
	m.change(m.target)
	if m.acrossDirs {
		m.touchDir(m.from, -links)
		m.touchDir(m.to, links)
	} else {
		m.touchDir(m.from, 0)
	}
	m.moved()
	return nil
}

// reparent notes where an object is named now.
func (t *txn) reparent(n, from, to *loaded) {
	switch {
	case n.IsDir() || (n.Nlink == 1 && to.Object.Slice() == n.Object.Slice()):
		n.Parent = to.Object
	case n.Parent == from.Object || to.Object.Slice() != n.Object.Slice():
		n.Parent = 0
	}
}

func (m *move) moved() {
	m.result.Attr, m.result.Dir, m.result.NewDir = m.source.Attr(), m.from.Attr(), m.to.Attr()
	m.result.Creation = m.creation()
}
