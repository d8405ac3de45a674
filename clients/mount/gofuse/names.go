//go:build linux || darwin

package gofuse

import (
	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func (b *binding) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	e, err := b.fs.Lookup(request{cancel}, caller(in, 0), node(in), name)
	if err != nil {
		return status(err)
	}
	if e.Node == 0 && e.EntryValid <= 0 {
		return fuse.ENOENT
	}
	putEntry(out, &e)
	return fuse.OK
}

func (b *binding) Forget(n, count uint64) { b.fs.Forget(mount.Inode(n), count) }

// made answers a call that made a name.
func made(out *fuse.EntryOut, e mount.Entry, err error) fuse.Status {
	if err != nil {
		return status(err)
	}
	putEntry(out, &e)
	return fuse.OK
}

func (b *binding) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	e, err := b.fs.Mknod(request{cancel}, caller(&in.InHeader, in.Umask), node(&in.InHeader), name, in.Mode, in.Rdev)
	return made(out, e, err)
}

func (b *binding) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	e, err := b.fs.Mkdir(request{cancel}, caller(&in.InHeader, in.Umask), node(&in.InHeader), name, in.Mode)
	return made(out, e, err)
}

func (b *binding) Symlink(cancel <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	e, err := b.fs.Symlink(request{cancel}, caller(in, 0), node(in), name, target)
	return made(out, e, err)
}

func (b *binding) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	e, err := b.fs.Link(request{cancel}, caller(&in.InHeader, 0), mount.Inode(in.Oldnodeid), node(&in.InHeader), name)
	return made(out, e, err)
}

func (b *binding) Readlink(cancel <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	target, err := b.fs.Readlink(request{cancel}, caller(in, 0), node(in))
	return target, status(err)
}

func (b *binding) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return status(b.fs.Unlink(request{cancel}, caller(in, 0), node(in), name))
}

func (b *binding) Rmdir(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return status(b.fs.Rmdir(request{cancel}, caller(in, 0), node(in), name))
}

func (b *binding) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	return status(b.fs.Rename(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), oldName,
		mount.Inode(in.Newdir), newName, renameFlags(in.Flags)))
}

func (b *binding) GetXAttr(cancel <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	n, err := b.fs.GetXattr(request{cancel}, caller(in, 0), node(in), name, dest)
	return uint32(n), status(err)
}

func (b *binding) ListXAttr(cancel <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	n, err := b.fs.ListXattr(request{cancel}, caller(in, 0), node(in), dest)
	return uint32(n), status(err)
}

func (b *binding) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	flags := mount.XattrFlags(in.Flags) & (mount.XattrCreate | mount.XattrReplace)
	if aclKillsSetGID(in) {
		flags |= mount.XattrKillSetGID
	}
	return status(b.fs.SetXattr(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), name, value, flags))
}

func (b *binding) RemoveXAttr(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return status(b.fs.RemoveXattr(request{cancel}, caller(in, 0), node(in), name))
}
