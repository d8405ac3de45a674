package memfs

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// move is one rename: what lies where, found once and checked.
type move struct {
	from, to         *inode
	name, newName    string
	source, replaced *inode // replaced may be nil
}

// Rename implements mount.Names.
func (v *View) Rename(_ context.Context, c mount.Caller, dir mount.Inode, name string, newDir mount.Inode, newName string, flags mount.RenameFlags) error {
	if flags&^(mount.RenameNoReplace|mount.RenameExchange) != 0 ||
		flags == mount.RenameNoReplace|mount.RenameExchange {
		return fail(fault.Invalid)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	m, err := v.findMove(dir, name, newDir, newName)
	if err != nil {
		return err
	}
	if err := v.checkMove(who(c), m, flags); err != nil {
		return err
	}
	if flags == mount.RenameExchange {
		v.exchange(m)
		return nil
	}
	if m.source == m.replaced {
		return nil
	}
	v.carryOut(m)
	return nil
}

func (v *View) findMove(dir mount.Inode, name string, newDir mount.Inode, newName string) (move, error) {
	from, err := v.directory(dir)
	if err != nil {
		return move{}, err
	}
	to, err := v.directory(newDir)
	if err != nil {
		return move{}, err
	}
	if len(name) > mount.NameMax || len(newName) > mount.NameMax {
		return move{}, fail(fault.NameTooLong)
	}
	for _, n := range []string{name, newName} {
		if n == "." || n == ".." {
			return move{}, fail(fault.Busy)
		}
	}
	m := move{from: from, to: to, name: name, newName: newName,
		source: from.entries.get(name), replaced: to.entries.get(newName)}
	if m.source == nil {
		return move{}, fail(fault.NotFound)
	}
	return m, nil
}

func (v *View) checkMove(w *identity, m move, flags mount.RenameFlags) error {
	if flags == mount.RenameNoReplace && m.replaced != nil {
		return fail(fault.Exists)
	}
	if flags == mount.RenameExchange && m.replaced == nil {
		return fail(fault.NotFound)
	}
	if err := m.from.mayRemove(w, m.source); err != nil {
		return err
	}
	if err := m.to.mayName(w); err != nil {
		return err
	}
	if m.to.attr.Nlink == 0 {
		return fail(fault.NotFound)
	}
	if m.replaced != nil {
		if err := m.to.mayRemove(w, m.replaced); err != nil {
			return err
		}
	}
	if err := v.checkAncestry(w, m.source, m.from, m.to); err != nil {
		return err
	}
	if flags == mount.RenameExchange {
		return v.checkAncestry(w, m.replaced, m.to, m.from)
	}
	return checkReplace(m)
}

// checkAncestry refuses to move a directory below itself; a new parent changes
// its "..", which needs permission to write it.
func (v *View) checkAncestry(w *identity, moved, from, to *inode) error {
	if moved.entries == nil || from == to {
		return nil
	}
	for at := to; ; at = v.inodes[at.parent] {
		if at == moved {
			return fail(fault.Invalid)
		}
		if at.node == mount.Root || at.parent == at.node {
			break
		}
	}
	return moved.may(w, mount.AccessWrite)
}

func checkReplace(m move) error {
	if m.replaced == nil || m.replaced == m.source {
		return nil
	}
	switch {
	case m.source.entries != nil && m.replaced.entries == nil:
		return fail(fault.NotDirectory)
	case m.source.entries == nil && m.replaced.entries != nil:
		return fail(fault.IsDirectory)
	case m.replaced.entries != nil && m.replaced.entries.len() > 0:
		return fail(fault.NotEmpty)
	}
	return nil
}

func (v *View) carryOut(m move) {
	now := v.now()
	if m.replaced != nil {
		v.tellGone(m.to, m.replaced, m.newName)
		v.drop(m.to, m.replaced, now)
	}
	m.from.entries.remove(m.name)
	m.to.entries.put(m.newName, m.source)
	m.reparent(m.source, m.from, m.to)
	m.from.changed(now)
	m.to.changed(now)
	m.source.attr.Ctime = now
	v.tellEntry(m.from, m.name)
	v.tellEntry(m.to, m.newName)
	v.tellAttr(m.source)
}

func (v *View) exchange(m move) {
	now := v.now()
	m.from.entries.put(m.name, m.replaced)
	m.to.entries.put(m.newName, m.source)
	m.reparent(m.source, m.from, m.to)
	m.reparent(m.replaced, m.to, m.from)
	for _, i := range []*inode{m.from, m.to} {
		i.changed(now)
	}
	for _, i := range []*inode{m.source, m.replaced} {
		i.attr.Ctime = now
		v.tellAttr(i)
	}
	v.tellEntry(m.from, m.name)
	v.tellEntry(m.to, m.newName)
}

func (move) reparent(i, from, to *inode) {
	if i.entries == nil || from == to {
		return
	}
	i.parent = to.node
	from.attr.Nlink--
	to.attr.Nlink++
}
