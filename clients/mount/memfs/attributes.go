package memfs

import (
	"context"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// GetAttr implements mount.Attributes.
func (v *View) GetAttr(_ context.Context, _ mount.Caller, node mount.Inode, _ mount.Handle) (mount.AttrReply, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return mount.AttrReply{}, err
	}
	return mount.AttrReply{Attr: i.stat(), Valid: v.valid}, nil
}

// SetAttr implements mount.Attributes. Everything is checked before anything
// changes.
func (v *View) SetAttr(_ context.Context, c mount.Caller, node mount.Inode, s mount.SetAttr) (mount.AttrReply, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return mount.AttrReply{}, err
	}
	w := who(c)
	for _, check := range []func(*identity, *inode, mount.SetAttr) error{checkOwner, checkTimes, v.checkSize} {
		if err := check(w, i, s); err != nil {
			return mount.AttrReply{}, err
		}
	}
	now := v.now()
	i.setOwner(w, s)
	if s.Valid&mount.SetSize != 0 {
		v.used -= i.content.truncate(int64(s.Size))
		i.changed(now)
		i.dropCapability()
		if s.Valid&mount.SetKillSetID != 0 {
			i.killSetID()
		}
		v.tellContent(i, 0, 0)
	}
	i.setTimes(s, now)
	i.attr.Ctime = now
	if s.Valid&mount.SetCtime != 0 {
		i.attr.Ctime = s.Ctime
	}
	v.tellAttr(i)
	return mount.AttrReply{Attr: i.stat(), Valid: v.valid}, nil
}

// checkOwner: only root gives files away; owners change the mode, and the
// group to one of theirs.
func checkOwner(w *identity, i *inode, s mount.SetAttr) error {
	if s.Valid&mount.SetMode != 0 && !i.owned(w) {
		return fail(fault.NotOwner)
	}
	if s.Valid&mount.SetOwner != 0 && !w.root() && (s.UID != i.attr.UID || !i.owned(w)) {
		return fail(fault.NotOwner)
	}
	if s.Valid&mount.SetGroup != 0 && !w.root() && (!i.owned(w) || s.GID != i.attr.GID && !w.in(s.GID)) {
		return fail(fault.NotOwner)
	}
	return nil
}

// checkTimes: owners set any time; who may write sets them to now.
func checkTimes(w *identity, i *inode, s mount.SetAttr) error {
	if s.Valid&(mount.SetAtime|mount.SetMtime) == 0 || s.Valid&mount.SetSize != 0 || i.owned(w) {
		return nil
	}
	explicit := s.Valid&mount.SetAtime != 0 && s.Valid&mount.SetAtimeNow == 0 ||
		s.Valid&mount.SetMtime != 0 && s.Valid&mount.SetMtimeNow == 0
	if explicit {
		return fail(fault.NotOwner)
	}
	return i.may(w, mount.AccessWrite)
}

func (s *Store) checkSize(w *identity, i *inode, change mount.SetAttr) error {
	if change.Valid&mount.SetSize == 0 {
		return nil
	}
	switch {
	case i.entries != nil:
		return fail(fault.IsDirectory)
	case i.kind() != mount.TypeRegular:
		return fail(fault.Invalid)
	case int64(change.Size) < 0:
		return fail(fault.TooLarge)
	}
	if h := s.handles[change.Handle]; h != nil {
		if !h.flags.Writes() {
			return fail(fault.Invalid)
		}
		return nil
	}
	return i.may(w, mount.AccessWrite)
}

func (i *inode) setOwner(w *identity, s mount.SetAttr) {
	if s.Valid&(mount.SetOwner|mount.SetGroup) != 0 {
		i.killSetID()
		i.dropCapability()
	}
	if s.Valid&mount.SetOwner != 0 {
		i.attr.UID = s.UID
	}
	if s.Valid&mount.SetGroup != 0 {
		i.attr.GID = s.GID
	}
	if s.Valid&mount.SetMode != 0 {
		i.chmod(w, s.Mode)
	}
}

func (i *inode) chmod(w *identity, mode uint32) {
	if mode&mount.SetGID != 0 && !w.root() && !w.in(i.attr.GID) {
		mode &^= mount.SetGID
	}
	i.attr.Mode = i.kind() | mode&0o7777
	if i.access != nil {
		i.access.chmod(mode)
	}
}

func (i *inode) setTimes(s mount.SetAttr, now int64) {
	if s.Valid&mount.SetAtime != 0 {
		i.attr.Atime = s.Atime
		if s.Valid&mount.SetAtimeNow != 0 {
			i.attr.Atime = now
		}
	}
	if s.Valid&mount.SetMtime != 0 {
		i.attr.Mtime = s.Mtime
		if s.Valid&mount.SetMtimeNow != 0 {
			i.attr.Mtime = now
		}
	}
}

// Access implements mount.Attributes.
func (v *View) Access(_ context.Context, c mount.Caller, node mount.Inode, mask uint32) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return err
	}
	return i.may(who(c), mask)
}

// StatFS implements mount.FileSystem.
func (v *View) StatFS(_ context.Context, _ mount.Caller, _ mount.Inode) (mount.Space, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	free := uint64(max(0, v.capacity-v.used)) / pageSize
	return mount.Space{
		BlockSize: pageSize, Blocks: uint64(v.capacity) / pageSize, FreeBlocks: free, AvailBlocks: free,
		Files: 1 << 40, FreeFiles: 1<<40 - uint64(len(v.inodes)), NameMax: mount.NameMax,
	}, nil
}
