//go:build linux || darwin

package gofuse

import (
	"syscall"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func lock(in *fuse.LkIn) (mount.Lock, bool) {
	l := mount.Lock{
		Owner: mount.LockOwner(in.Owner), Start: in.Lk.Start, End: in.Lk.End, PID: in.Lk.Pid,
		Whole: in.LkFlags&fuse.LK_FLOCK != 0,
	}
	switch in.Lk.Typ {
	case syscall.F_RDLCK:
		l.Type = mount.ReadLock
	case syscall.F_WRLCK:
		l.Type = mount.WriteLock
	case syscall.F_UNLCK:
		l.Type = mount.Unlock
	default:
		return l, false
	}
	if l.Whole {
		l.Start, l.End = 0, mount.LockEnd
	}
	return l, true
}

func (b *binding) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	l, ok := lock(in)
	if !ok {
		return fuse.EINVAL
	}
	found, err := b.fs.GetLock(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh), l)
	if err != nil {
		return status(err)
	}
	out.Lk.Start, out.Lk.End, out.Lk.Pid = found.Start, found.End, found.PID
	switch found.Type {
	case mount.ReadLock:
		out.Lk.Typ = syscall.F_RDLCK
	case mount.WriteLock:
		out.Lk.Typ = syscall.F_WRLCK
	default:
		out.Lk.Typ = syscall.F_UNLCK
	}
	return fuse.OK
}

func (b *binding) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return b.setLock(cancel, in, false)
}

func (b *binding) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return b.setLock(cancel, in, true)
}

func (b *binding) setLock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	l, ok := lock(in)
	if !ok {
		return fuse.EINVAL
	}
	return status(b.fs.SetLock(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh), l, wait))
}
