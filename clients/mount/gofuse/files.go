//go:build linux || darwin

package gofuse

import (
	"syscall"

	"cartwheel.dev/clients/mount"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func (b *binding) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	flags := createFlags(in)
	e, o, err := b.fs.Create(request{cancel}, caller(&in.InHeader, in.Umask), node(&in.InHeader), name, in.Mode, flags)
	if err != nil {
		return status(err)
	}
	putEntry(&out.EntryOut, &e)
	putOpened(&out.OpenOut, o, flags)
	return fuse.OK
}

func (b *binding) Tmpfile(cancel <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	if b.nameless == nil {
		return fuse.ENOSYS
	}
	flags := createFlags(in)
	e, o, err := b.nameless.CreateNameless(request{cancel}, caller(&in.InHeader, in.Umask), node(&in.InHeader), in.Mode, flags)
	if err != nil {
		return status(err)
	}
	putEntry(&out.EntryOut, &e)
	putOpened(&out.OpenOut, o, flags)
	return fuse.OK
}

func createFlags(in *fuse.CreateIn) mount.OpenFlags {
	flags := openFlags(in.Flags)
	if in.OpenFlags&fuse.OPEN_KILL_SUIDGID != 0 {
		flags |= mount.OpenKillSetID
	}
	return flags
}

func (b *binding) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	flags := openFlags(in.Flags)
	if in.Mode&fuse.OPEN_KILL_SUIDGID != 0 {
		flags |= mount.OpenKillSetID
	}
	o, err := b.fs.Open(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), flags)
	if err != nil {
		return status(err)
	}
	putOpened(out, o, flags)
	return fuse.OK
}

func (b *binding) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	var pieces [][]byte
	var n int
	var err error
	buf = buf[:min(len(buf), int(in.Size))]
	if b.pieces != nil && len(buf) > pieceRead {
		pieces, n, err = b.pieces.ReadPieces(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh), int64(in.Offset), buf)
	} else {
		n, err = b.fs.Read(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh), int64(in.Offset), buf)
	}
	if err != nil {
		return nil, status(err)
	}
	if pieces != nil {
		return b.vector(in.Unique, pieces), fuse.OK
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// pieceRead is up to what size a read is answered from one buffer: copying so
// little costs less than handing many pieces over.
const pieceRead = 64 << 10

// Writev is what go-fuse calls first; the kernel's data come in one piece.
func (b *binding) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if len(data) != 1 {
		return 0, fuse.ENOSYS
	}
	return b.Write(cancel, in, data[0])
}

func (b *binding) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	flags := writeFlags(in)
	n, err := b.fs.Write(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh),
		int64(in.Offset), data, flags)
	if err != nil {
		return 0, status(err)
	}
	if flags&mount.WriteAppend != 0 {
		// The kernel dropped its pages before it asked, and a reader may have
		// filled one again in between, which ends where the file ended then.
		b.notifier.InvalidateInode(node(&in.InHeader), int64(in.Offset), int64(n))
	}
	return uint32(n), fuse.OK
}

func writeFlags(in *fuse.WriteIn) mount.WriteFlags {
	out := mount.WriteFlags(0)
	switch {
	case in.WriteFlags&fuse.WRITE_CACHE != 0:
		out |= mount.WriteBack
	case in.Flags&syscall.O_APPEND != 0:
		out |= mount.WriteAppend
	}
	if in.Flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		out |= mount.WriteSync
	}
	if in.Flags&flagDirect != 0 {
		out |= mount.WriteDirect
	}
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		out |= mount.WriteKillSetID
	}
	return out
}

func (b *binding) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return status(b.fs.Flush(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader),
		mount.Handle(in.Fh), mount.LockOwner(in.LockOwner)))
}

// releaseUnlock is the kernel's FUSE_RELEASE_FLOCK_UNLOCK.
const releaseUnlock = 1 << 1

func (b *binding) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	b.fs.Release(node(&in.InHeader), mount.Handle(in.Fh), mount.LockOwner(in.LockOwner), in.ReleaseFlags&releaseUnlock != 0)
}

// syncDataOnly is the kernel's FUSE_FSYNC_FDATASYNC.
const syncDataOnly = 1

func (b *binding) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return status(b.fs.Fsync(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader),
		mount.Handle(in.Fh), in.FsyncFlags&syncDataOnly != 0))
}

func (b *binding) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	whence := mount.SeekData
	switch in.Whence {
	case seekData:
	case seekHole:
		whence = mount.SeekHole
	default:
		return fuse.EINVAL
	}
	at, err := b.fs.Seek(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh), int64(in.Offset), whence)
	if err != nil {
		return status(err)
	}
	out.Offset = uint64(at)
	return fuse.OK
}

func (b *binding) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return status(b.fs.Allocate(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.Fh),
		int64(in.Offset), int64(in.Length), mount.AllocateMode(in.Mode)))
}

func (b *binding) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	if b.copier == nil {
		return 0, fuse.ENOSYS
	}
	n, err := b.copier.CopyRange(request{cancel}, caller(&in.InHeader, 0), node(&in.InHeader), mount.Handle(in.FhIn), int64(in.OffIn),
		mount.Inode(in.NodeIdOut), mount.Handle(in.FhOut), int64(in.OffOut), int64(min(in.Len, 1<<30)))
	if err != nil {
		return 0, status(err)
	}
	return uint32(n), fuse.OK
}
