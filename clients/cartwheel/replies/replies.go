// Package replies turns attributes and names into what the kernel is answered, with
// how long it may keep each: no longer than the lease that covers it, and not at all
// where a write that is not committed shows in it. It remembers what names were
// shown to mean, because a kernel renames what it was shown. The package asks no
// node.
package replies

import (
	"time"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/cartwheel/owed"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

const (
	blockSize     = 512
	directorySize = 4096
)

// Options set up a Builder. None may be missing.
type Options struct {
	Names  *names.Cache
	Nodes  *inodes.Table
	Kernel *inodes.Kernel
	Owed   *owed.Table
	Clock  boottime.Func
	// Engine returns the content engine, once there are files.
	Engine func() *content.Engine
}

// Builder builds answers. It is safe for use by many goroutines; it has no lock but
// that of what it remembers, which is held over no call.
type Builder struct {
	opt   Options
	shown inodes.Shown
}

// New returns a Builder that has shown nothing.
func New(o Options) *Builder { return &Builder{opt: o} }

// Stat turns attributes into what stat shows, with what is written and not yet
// committed, and with a ctime that its active has not moved yet. Those of dirty files change by themselves, so that the kernel may not
// keep them.
func (b *Builder) Stat(a *pb.Attr) (out mount.Attr, dirty bool) {
	out = mount.Attr{
		Ino: a.Object, Size: a.Size, Blocks: (a.Stored + blockSize - 1) / blockSize,
		Atime: a.AtimeNs, Mtime: a.MtimeNs, Ctime: a.CtimeNs, Btime: a.BtimeNs,
		Mode: a.Mode, Nlink: a.Nlink, UID: a.Uid, GID: a.Gid, Rdev: a.Rdev,
	}
	switch a.Mode & mount.TypeMask {
	case mount.TypeDir:
		out.Size = directorySize
	case mount.TypeRegular:
		over := pb.Attr{Object: a.Object, Size: a.Size, Version: a.Version, MtimeNs: a.MtimeNs, CtimeNs: a.CtimeNs}
		if dirty = b.opt.Engine().Overlay(&over); dirty {
			out.Size, out.Mtime, out.Ctime = over.Size, over.MtimeNs, over.CtimeNs
		}
		if debt, ok := b.opt.Owed.Of(ids.Object(a.Object)); ok {
			out.Ctime, dirty = max(out.Ctime, debt.At), true
		}
	}
	return out, dirty
}

// stat is Stat with how long the kernel may keep it.
func (b *Builder) stat(a *pb.Attr, left time.Duration) (mount.Attr, time.Duration) {
	out, dirty := b.Stat(a)
	if dirty {
		left = 0
	}
	return out, left
}

// Attr answers attributes with how long the kernel may keep them. When a
// directory's lease is revoked, the client tells the kernel of the files whose
// names it may believe, and of no others. The kernel may therefore keep attributes
// that only the directory's lease covers no longer than it may believe the name.
func (b *Builder) Attr(a *pb.Attr) mount.AttrReply {
	left, own := b.opt.Names.Good(a)
	if !own && left > 0 {
		left = min(left, b.opt.Nodes.CachedFor(ids.Object(a.Object), b.opt.Clock()))
	}
	var r mount.AttrReply
	r.Attr, r.Valid = b.stat(a, left)
	return r
}

// Entry answers a lookup and counts it. The kernel may keep the attributes if a
// lease on the object itself covers them; Believe adds what the directory's lease
// covers.
func (b *Builder) Entry(a *pb.Attr, cues cue.Set) mount.Entry {
	o := ids.Object(a.Object)
	id := b.opt.Nodes.Look(o, cues, a.Mode&mount.TypeMask == mount.TypeDir)
	if b.opt.Nodes.IsFull() {
		b.opt.Kernel.Release()
	}
	left, own := b.opt.Names.Good(a)
	if !own {
		left = 0
	}
	e := mount.Entry{Node: id, Generation: 1}
	e.Attr, e.AttrValid = b.stat(a, left)
	if a.Mode&mount.TypeMask == mount.TypeDir {
		b.opt.Nodes.RememberAttr(id, &e.Attr)
	}
	return e
}

// Believe bounds how long the kernel may believe a name, and keep the attributes
// of the object. Attr says why the attributes that only the directory's lease
// covers end with the name.
func (b *Builder) Believe(e *mount.Entry, a *pb.Attr, dir mount.Inode, name string, left time.Duration) {
	e.EntryValid = b.Name(dir, name, e.Node, left)
	if left, own := b.opt.Names.Good(a); !own {
		e.Attr, e.AttrValid = b.stat(a, min(left, e.EntryValid))
	}
}

// Name bounds how long the kernel may believe a name, and remembers that it does,
// and what it was shown. Child 0 says that the name is not there.
func (b *Builder) Name(dir mount.Inode, name string, child mount.Inode, left time.Duration) time.Duration {
	means := inodes.Meaning{Child: child}
	defer func() { b.shown.Note(inodes.Name{Dir: dir, Name: name}, means) }()
	if left <= 0 {
		return 0
	}
	now := b.opt.Clock()
	if !b.opt.Nodes.MayCache(dir, name, child, now, now+left) {
		return 0
	}
	means.Until = now + left
	return left
}

// In is a directory as the kernel knows it.
type In struct {
	Node mount.Inode
	Dir  ids.Object
	Cues cue.Set
}

// Named is Entry and Believe for a name that means an object. A regular file below
// cues is looked up again at each open, so that it is known by which path it is
// opened.
func (b *Builder) Named(in In, name string, a *pb.Attr) mount.Entry {
	e := b.Entry(a, in.Cues)
	b.Found(&e, in, name, a)
	return e
}

// Found is Named for a lookup that is counted already.
func (b *Builder) Found(e *mount.Entry, in In, name string, a *pb.Attr) {
	// The attributes may have come long after the name, under another lease.
	left := b.opt.Names.Means(in.Dir, name, ids.Object(a.Object))
	if !in.Cues.Empty() && a.Mode&mount.TypeMask == mount.TypeRegular {
		left = 0
	}
	b.Believe(e, a, in.Node, name, left)
}
