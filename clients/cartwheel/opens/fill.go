package opens

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// The content of a small file goes to the kernel with the answer to its first
// open. The kernel then need not ask for it, nor, as it does after each read that
// it sent, for the attributes at the next open. That is done only where the content
// is here, or a node that is near has it; and once in the life of an inode, before
// any other open: then the kernel has no other pages of it, no process writes to
// them, and no read of them is under way. An open meanwhile waits, and so does a
// change of the size.
const (
	// fillMost bounds the bytes of such a file.
	fillMost = 64 << 10
	// fillTimeout bounds the wait for a near node; the kernel asks by itself then.
	fillTimeout = time.Second
)

// Finish answers an open, but for the number of its handle: it decides which of its
// pages the kernel keeps, and fills them where that is worth it.
func (p *Opener) Finish(ctx context.Context, b *inodes.Opening, h *content.Handle, a *pb.Attr, flags mount.OpenFlags) mount.Opened {
	var data []byte
	if b.Fresh {
		data = p.toFill(ctx, b.Object, h, a, flags)
	}
	done := p.opt.Nodes.FinishOpen(b, a.Version, len(data) > 0)
	if !done.IsCurrent {
		p.opt.Engine().Invalidate(b.Object) // the attributes may be older than the revocation
	}
	keep := done.KeepPages
	if done.Fill != nil {
		keep = p.fill(done.Fill, b.Object, a.Version, data)
	} else if done.Filling != nil {
		<-done.Filling
	}
	return mount.Opened{KeepCache: keep, DirectIO: flags&mount.OpenDirect != 0, NoFlush: done.NoFlush}
}

// toFill returns the content of a file for the kernel; nil: nothing is to be
// filled.
func (p *Opener) toFill(ctx context.Context, o ids.Object, h *content.Handle, a *pb.Attr, flags mount.OpenFlags) []byte {
	if flags.Writes() || flags&(mount.OpenDirect|mount.OpenTruncate) != 0 || a.Size == 0 || a.Size > fillMost || p.opt.Kernel.Filler() == nil {
		return nil
	}
	data, ok := h.Whole(ctx, a.Version, fillMost, false)
	if !ok && p.opt.IsContentNear(o.Slice()) {
		out, cancel := p.opt.Limits.Remotely(ctx)
		defer cancel()
		short, stop := context.WithTimeout(out, fillTimeout)
		defer stop()
		data, _ = h.Whole(short, a.Version, fillMost, true)
	}
	return data
}

// fill gives the kernel the content of a version, unless it is not the current
// one any more, and reports whether the kernel has it.
func (p *Opener) fill(to *inodes.Fill, o ids.Object, version uint64, data []byte) bool {
	defer to.End()
	f := p.opt.Kernel.Filler()
	return f != nil && f.Fill(to.Inode(), data, func() bool {
		now, ok := p.opt.Names.Own(o)
		return ok && now.Version == version && to.IsCurrent()
	})
}
