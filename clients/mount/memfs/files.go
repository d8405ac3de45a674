package memfs

import (
	"context"
	"math"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// Create implements mount.Files.
func (v *View) Create(_ context.Context, c mount.Caller, dir mount.Inode, name string, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.directory(dir)
	if err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	if i := v.child(d, name); i != nil && flags&mount.OpenExclusive == 0 {
		opened, err := v.open(c, i, flags)
		if err != nil {
			return mount.Entry{}, mount.Opened{}, err
		}
		return v.entry(i), opened, nil
	}
	if d, err = v.place(c, dir, name); err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	i := v.makeIn(c, d, mode&^mount.TypeMask|mount.TypeRegular)
	v.name(d, name, i)
	return v.entry(i), v.handle(i, flags), nil
}

// CreateNameless implements mount.NamelessCreator.
func (v *View) CreateNameless(_ context.Context, c mount.Caller, dir mount.Inode, mode uint32, flags mount.OpenFlags) (mount.Entry, mount.Opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.directory(dir)
	if err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	if err := d.mayName(who(c)); err != nil {
		return mount.Entry{}, mount.Opened{}, err
	}
	i := v.makeIn(c, d, mode&^mount.TypeMask|mount.TypeRegular)
	i.attr.Nlink = 0
	return v.entry(i), v.handle(i, flags), nil
}

// Open implements mount.Files.
func (v *View) Open(_ context.Context, c mount.Caller, node mount.Inode, flags mount.OpenFlags) (mount.Opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, err := v.get(node)
	if err != nil {
		return mount.Opened{}, err
	}
	return v.open(c, i, flags)
}

func (v *View) open(c mount.Caller, i *inode, flags mount.OpenFlags) (mount.Opened, error) {
	if i.entries != nil {
		return mount.Opened{}, fail(fault.IsDirectory)
	}
	want := uint32(0)
	if flags.Writes() || flags&mount.OpenTruncate != 0 {
		want |= mount.AccessWrite
	}
	switch {
	case flags&mount.OpenExecute != 0:
		want |= mount.AccessExecute
	case flags.Reads():
		want |= mount.AccessRead
	}
	if err := i.may(who(c), want); err != nil {
		return mount.Opened{}, err
	}
	if flags&mount.OpenTruncate != 0 {
		v.used -= i.content.truncate(0)
		i.changed(v.now())
		i.dropCapability()
		if flags&mount.OpenKillSetID != 0 {
			i.killSetID()
		}
		v.tellContent(i, 0, 0)
	}
	return v.handle(i, flags), nil
}

func (s *Store) handle(i *inode, flags mount.OpenFlags) mount.Opened {
	s.opened++
	s.handles[s.opened] = &handle{inode: i, flags: flags}
	i.handles++
	if flags.Writes() {
		i.writers++
	}
	return mount.Opened{Handle: s.opened, DirectIO: flags&mount.OpenDirect != 0, NoFlush: i.writers == 0 && !i.locks.used}
}

// file finds the open file of a handle.
func (s *Store) file(h mount.Handle) (*handle, error) {
	if found := s.handles[h]; found != nil {
		return found, nil
	}
	return nil, fail(fault.BadHandle)
}

// Read implements mount.Files; it keeps atime as relatime does.
func (v *View) Read(_ context.Context, _ mount.Caller, _ mount.Inode, h mount.Handle, offset int64, buf []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return 0, err
	}
	f.inode.accessed(v.now())
	return f.inode.content.read(offset, buf), nil
}

const day = 24 * 3600 * 1e9

func (i *inode) accessed(now int64) {
	a := &i.attr
	if a.Atime <= a.Mtime || a.Atime <= a.Ctime || now-a.Atime >= day {
		a.Atime = now
	}
}

// Write implements mount.Files.
func (v *View) Write(_ context.Context, _ mount.Caller, _ mount.Inode, h mount.Handle, offset int64, data []byte, flags mount.WriteFlags) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return 0, err
	}
	i := f.inode
	at := offset
	if flags&mount.WriteAppend != 0 {
		at = i.content.size
	}
	if at > math.MaxInt64-int64(len(data)) {
		return 0, fail(fault.TooLarge)
	}
	if i.content.lacking(at, int64(len(data))) > v.capacity-v.used {
		return 0, fail(fault.NoSpace)
	}
	v.used += i.content.write(at, data)
	i.changed(v.now())
	i.dropCapability()
	if flags&mount.WriteKillSetID != 0 {
		i.killSetID()
	}
	v.tellContent(i, at, int64(len(data)))
	if at != offset && v.notifier != nil {
		v.notifier.InvalidateInode(i.node, 0, 0)
	}
	return len(data), nil
}

// Flush implements mount.Files.
func (v *View) Flush(_ context.Context, _ mount.Caller, node mount.Inode, h mount.Handle, owner mount.LockOwner) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return err
	}
	v.unlockAll(f.inode, lockOwner{view: v.id, owner: owner})
	return nil
}

// Release implements mount.Files. It goes by the handle, not by the owner: the
// kernel tells of a close late, and names the owner of an flock by an address
// that the next open may have by then, with a lock of its own.
func (v *View) Release(_ mount.Inode, h mount.Handle, _ mount.LockOwner, unlock bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.handles[h]
	if f == nil {
		return
	}
	f.inode.locks.drop(func(l heldLock) bool { return l.handle == h && (unlock || !l.owner.whole) })
	delete(v.handles, h)
	f.inode.handles--
	if f.flags.Writes() {
		f.inode.writers--
	}
	v.settle(f.inode)
}

// Fsync implements mount.Files; memory has nothing to sync.
func (v *View) Fsync(_ context.Context, _ mount.Caller, _ mount.Inode, h mount.Handle, _ bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err := v.file(h)
	return err
}

// Seek implements mount.Files.
func (v *View) Seek(_ context.Context, _ mount.Caller, _ mount.Inode, h mount.Handle, offset int64, whence mount.Whence) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return 0, err
	}
	at, ok := f.inode.content.seek(offset, whence == mount.SeekData)
	if !ok {
		return 0, fail(fault.NoDevice)
	}
	return at, nil
}

// Allocate implements mount.Files.
func (v *View) Allocate(_ context.Context, c mount.Caller, _ mount.Inode, h mount.Handle, offset, length int64, mode mount.AllocateMode) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, err := v.file(h)
	if err != nil {
		return err
	}
	if offset < 0 || length <= 0 {
		return fail(fault.Invalid)
	}
	if offset > math.MaxInt64-length {
		return fail(fault.TooLarge)
	}
	i := f.inode
	if err := v.allocate(&i.content, offset, length, mode); err != nil {
		return err
	}
	if mode&mount.AllocateKeepSize == 0 {
		i.content.size = max(i.content.size, offset+length)
	}
	i.changed(v.now())
	i.dropCapability()
	if c.UID != 0 {
		i.killSetID()
	}
	v.tellContent(i, offset, length)
	return nil
}

func (v *View) allocate(c *content, offset, length int64, mode mount.AllocateMode) error {
	switch mode &^ mount.AllocateKeepSize {
	case 0:
		if c.lacking(offset, length) > v.capacity-v.used {
			return fail(fault.NoSpace)
		}
		v.used += c.reserve(offset, length)
	case mount.AllocateZeroRange:
		v.used -= c.punch(offset, length)
		if c.lacking(offset, length) > v.capacity-v.used {
			return fail(fault.NoSpace)
		}
		v.used += c.reserve(offset, length)
	case mount.AllocatePunchHole:
		if mode&mount.AllocateKeepSize == 0 {
			return fail(fault.NotSupported)
		}
		v.used -= c.punch(offset, length)
	default:
		return fail(fault.NotSupported)
	}
	return nil
}
