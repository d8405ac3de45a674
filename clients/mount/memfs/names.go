package memfs

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// Lookup implements mount.Names.
func (v *View) Lookup(_ context.Context, c mount.Caller, dir mount.Inode, name string) (mount.Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.directory(dir)
	if err != nil {
		return mount.Entry{}, err
	}
	if err := d.may(who(c), mount.AccessExecute); err != nil {
		return mount.Entry{}, err
	}
	if len(name) > mount.NameMax {
		return mount.Entry{}, fail(fault.NameTooLong)
	}
	found := v.child(d, name)
	if found == nil {
		return mount.Entry{EntryValid: v.valid}, nil
	}
	return v.entry(found), nil
}

func (s *Store) child(d *inode, name string) *inode {
	switch name {
	case ".":
		return d
	case "..":
		return s.inodes[d.parent]
	}
	return d.entries.get(name)
}

// Forget implements mount.Names.
func (v *View) Forget(node mount.Inode, count uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := v.inodes[node]; i != nil {
		i.lookups -= min(count, i.lookups)
		v.settle(i)
	}
}

// place checks that name may be made in dir, and answers dir.
func (s *Store) place(c mount.Caller, dir mount.Inode, name string) (*inode, error) {
	d, err := s.directory(dir)
	if err != nil {
		return nil, err
	}
	if len(name) > mount.NameMax {
		return nil, fail(fault.NameTooLong)
	}
	if s.child(d, name) != nil {
		return nil, fail(fault.Exists)
	}
	if d.attr.Nlink == 0 {
		return nil, fail(fault.NotFound)
	}
	return d, d.mayName(who(c))
}

// makeIn makes an object of mode for c in d, without a name.
func (s *Store) makeIn(c mount.Caller, d *inode, mode uint32) *inode {
	w := who(c)
	var access acl
	if d.deflt != nil && mode&mount.TypeMask != mount.TypeSymlink {
		access = d.deflt.inherit(mode)
		mode = mode&^0o777 | access.mode()
	} else {
		mode &^= c.Umask & 0o777
	}
	i := s.makeInode(mode)
	i.attr.UID, i.attr.GID, i.attr.Nlink = c.UID, c.GID, 1
	if d.attr.Mode&mount.SetGID != 0 {
		i.attr.GID = d.attr.GID
		if i.entries != nil {
			i.attr.Mode |= mount.SetGID
		} else if i.attr.Mode&0o2010 == 0o2010 && !w.root() && !w.in(i.attr.GID) {
			i.attr.Mode &^= mount.SetGID
		}
	}
	if access != nil && !access.plain() {
		i.access = access
	}
	if i.entries != nil {
		i.attr.Nlink = 2
		i.deflt = append(acl(nil), d.deflt...)
		if len(i.deflt) == 0 {
			i.deflt = nil
		}
	}
	return i
}

// name gives i its name in d and tells the other views.
func (v *View) name(d *inode, name string, i *inode) {
	d.entries.put(name, i)
	d.changed(v.now())
	if i.entries != nil {
		i.parent = d.node
		d.attr.Nlink++
	}
	v.tellEntry(d, name)
}

func (v *View) makeNamed(c mount.Caller, dir mount.Inode, name string, mode uint32, fill func(*inode)) (mount.Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.place(c, dir, name)
	if err != nil {
		return mount.Entry{}, err
	}
	i := v.makeIn(c, d, mode)
	fill(i)
	v.name(d, name, i)
	return v.entry(i), nil
}

// Mknod implements mount.Names.
func (v *View) Mknod(_ context.Context, c mount.Caller, dir mount.Inode, name string, mode, rdev uint32) (mount.Entry, error) {
	if mode&mount.TypeMask == mount.TypeDir || mode&mount.TypeMask == mount.TypeSymlink {
		return mount.Entry{}, fail(fault.NotOwner)
	}
	return v.makeNamed(c, dir, name, mode, func(i *inode) { i.attr.Rdev = rdev })
}

// Mkdir implements mount.Names.
func (v *View) Mkdir(_ context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32) (mount.Entry, error) {
	return v.makeNamed(c, dir, name, mode&^mount.TypeMask|mount.TypeDir, func(*inode) {})
}

// Symlink implements mount.Names.
func (v *View) Symlink(_ context.Context, c mount.Caller, dir mount.Inode, name, target string) (mount.Entry, error) {
	if target == "" {
		return mount.Entry{}, fail(fault.NotFound)
	}
	if len(target) >= mount.PathMax {
		return mount.Entry{}, fail(fault.NameTooLong)
	}
	c.Umask = 0
	return v.makeNamed(c, dir, name, mount.TypeSymlink|0o777, func(i *inode) { i.target = target })
}

// Readlink implements mount.Names.
func (v *View) Readlink(_ context.Context, _ mount.Caller, node mount.Inode) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return nil, err
	}
	if i.target == "" {
		return nil, fail(fault.Invalid)
	}
	return []byte(i.target), nil
}

// Link implements mount.Names.
func (v *View) Link(_ context.Context, c mount.Caller, node, dir mount.Inode, name string) (mount.Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return mount.Entry{}, err
	}
	if i.entries != nil {
		return mount.Entry{}, fail(fault.NotOwner)
	}
	d, err := v.place(c, dir, name)
	if err != nil {
		return mount.Entry{}, err
	}
	i.attr.Nlink++
	i.attr.Ctime = v.now()
	v.name(d, name, i)
	v.tellAttr(i)
	return v.entry(i), nil
}

// Unlink implements mount.Names.
func (v *View) Unlink(_ context.Context, c mount.Caller, dir mount.Inode, name string) error {
	return v.remove(c, dir, name, func(i *inode) error {
		if i.entries != nil {
			return fail(fault.IsDirectory)
		}
		return nil
	})
}

// Rmdir implements mount.Names.
func (v *View) Rmdir(_ context.Context, c mount.Caller, dir mount.Inode, name string) error {
	switch name {
	case ".":
		return fail(fault.Invalid)
	case "..":
		return fail(fault.NotEmpty)
	}
	return v.remove(c, dir, name, func(i *inode) error {
		if i.entries == nil {
			return fail(fault.NotDirectory)
		}
		if i.entries.len() > 0 {
			return fail(fault.NotEmpty)
		}
		return nil
	})
}

func (v *View) remove(c mount.Caller, dir mount.Inode, name string, check func(*inode) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.directory(dir)
	if err != nil {
		return err
	}
	i := d.entries.get(name)
	if i == nil {
		return fail(fault.NotFound)
	}
	if err := d.mayRemove(who(c), i); err != nil {
		return err
	}
	if err := check(i); err != nil {
		return err
	}
	v.unname(d, name, i)
	return nil
}

// unname takes a name away, and the object with its last one.
func (v *View) unname(d *inode, name string, i *inode) {
	now := v.now()
	d.entries.remove(name)
	d.changed(now)
	v.tellGone(d, i, name)
	v.drop(d, i, now)
}

// drop counts down the links of an object that lost a name in d.
func (v *View) drop(d, i *inode, now int64) {
	i.attr.Ctime = now
	if i.entries != nil {
		i.attr.Nlink = 0
		d.attr.Nlink--
	} else {
		i.attr.Nlink--
	}
	v.settle(i)
}
