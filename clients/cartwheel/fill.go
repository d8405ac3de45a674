package cartwheel

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// The content of a small file goes to the kernel with the answer to its first
// open, so that the kernel need not ask for it, nor, as it does after each read
// that it sent, for the attributes at the next open. Only where it is here, or
// a node that is near has it; and once in the life of a node, before anybody
// else has it open: then the kernel has no other pages of it, nobody writes to
// them, and no read of them is under way. Whoever opens it meanwhile, or sets
// its size, waits.
const (
	// fillMost bounds the bytes of such a file.
	fillMost = 64 << 10
	// fillPatience bounds the wait for a near node; the kernel asks by itself
	// then.
	fillPatience = time.Second
)

// toFill returns the content of a file for the kernel; nil: nothing is to be
// filled.
func (c *Client) toFill(ctx context.Context, h *handle, a *pb.Attr) []byte {
	if h.flags.Writes() || h.flags&(mount.OpenDirect|mount.OpenTruncate) != 0 || a.Size == 0 || a.Size > fillMost || c.kernel.Filler() == nil {
		return nil
	}
	data, ok := h.content.Whole(ctx, a.Version, fillMost, false)
	if !ok && c.nearContent(h.object.Slice()) {
		out, cancel := c.limits.Remotely(ctx)
		defer cancel()
		short, stop := context.WithTimeout(out, fillPatience)
		defer stop()
		data, _ = h.content.Whole(short, a.Version, fillMost, true)
	}
	return data
}

// fill gives the kernel the content of a version, unless it is not the current
// one any more, and reports whether the kernel has it.
func (c *Client) fill(to *inodes.Fill, o ids.Object, version uint64, data []byte) bool {
	defer to.End()
	f := c.kernel.Filler()
	return f != nil && f.Fill(to.Inode(), data, func() bool {
		now, ok := c.names.Own(o)
		return ok && now.Version == version && to.IsCurrent()
	})
}
