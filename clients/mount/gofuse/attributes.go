//go:build linux || darwin

package gofuse

import (
	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func (b *binding) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	h := mount.Handle(0)
	if in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		h = mount.Handle(in.Fh())
	}
	r, err := b.fs.GetAttr(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), h)
	if err != nil {
		return status(err)
	}
	putReply(out, &r)
	return fuse.OK
}

// setValid turns the kernel's bits into the contract's.
func setValid(kernel uint32) uint32 {
	valid := uint32(0)
	for _, bit := range [...]struct{ kernel, mount uint32 }{
		{fuse.FATTR_MODE, mount.SetMode}, {fuse.FATTR_UID, mount.SetOwner}, {fuse.FATTR_GID, mount.SetGroup},
		{fuse.FATTR_SIZE, mount.SetSize}, {fuse.FATTR_ATIME, mount.SetAtime}, {fuse.FATTR_MTIME, mount.SetMtime},
		{fuse.FATTR_CTIME, mount.SetCtime}, {fuse.FATTR_ATIME_NOW, mount.SetAtimeNow},
		{fuse.FATTR_MTIME_NOW, mount.SetMtimeNow}, {fuse.FATTR_KILL_SUIDGID, mount.SetKillSetID},
	} {
		if kernel&bit.kernel != 0 {
			valid |= bit.mount
		}
	}
	return valid
}

func (b *binding) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	change := mount.SetAttr{
		Valid: setValid(in.Valid), Mode: in.Mode & 0o7777, UID: in.Uid, GID: in.Gid, Size: in.Size,
		Atime: join(in.Atime, in.Atimensec), Mtime: join(in.Mtime, in.Mtimensec), Ctime: join(in.Ctime, in.Ctimensec),
	}
	if in.Valid&fuse.FATTR_FH != 0 {
		change.Handle = mount.Handle(in.Fh)
	}
	r, err := b.fs.SetAttr(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), change)
	if err != nil {
		return status(err)
	}
	putReply(out, &r)
	return fuse.OK
}

// The parts of statx that every answer has.
const statxAll = 0x0fff // STATX_BASIC_STATS and STATX_BTIME

func (b *binding) Statx(cancel <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	h := mount.Handle(0)
	if in.GetattrFlags&fuse.FUSE_GETATTR_FH != 0 {
		h = mount.Handle(in.Fh)
	}
	r, err := b.fs.GetAttr(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), h)
	if err != nil {
		return status(err)
	}
	a, s := &r.Attr, &out.Statx
	out.SetTimeout(max(0, r.Valid))
	s.Mask, s.Blksize = statxAll, blockSize
	s.Nlink, s.Uid, s.Gid, s.Mode = a.Nlink, a.UID, a.GID, uint16(a.Mode)
	s.Ino, s.Size, s.Blocks = a.Ino, a.Size, a.Blocks
	s.Atime.Sec, s.Atime.Nsec = split(a.Atime)
	s.Mtime.Sec, s.Mtime.Nsec = split(a.Mtime)
	s.Ctime.Sec, s.Ctime.Nsec = split(a.Ctime)
	s.Btime.Sec, s.Btime.Nsec = split(a.Btime)
	s.RdevMajor, s.RdevMinor = a.Rdev>>8&0xfff, a.Rdev&0xff|a.Rdev>>12&0xfff00
	return fuse.OK
}

func (b *binding) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	return status(b.fs.Access(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), in.Mask))
}

func (b *binding) StatFs(cancel <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s, err := b.fs.StatFS(request{cancel}, caller(in, 0), node(in))
	if err != nil {
		return status(err)
	}
	out.Blocks, out.Bfree, out.Bavail = s.Blocks, s.FreeBlocks, s.AvailBlocks
	out.Files, out.Ffree = s.Files, s.FreeFiles
	out.Bsize, out.Frsize, out.NameLen = s.BlockSize, s.BlockSize, s.NameMax
	return fuse.OK
}
