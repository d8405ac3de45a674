package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// On eventual terms an operation may get no answer, and be done nevertheless. One that
// takes content away could leave a file without any that has its name elsewhere. So a
// file that is open here for writing is cut in what this client is to commit: the others
// see that with its next commit.

// writeAccess is the permission to write, as access(2) has it.
const writeAccess = 2

// emptiesLater reports whether an open takes all content away with the next commit.
func emptiesLater(ctx context.Context, flags mount.OpenFlags) bool {
	return flags&mount.OpenTruncate != 0 && flags.Writes() && timeouts.Eventual(ctx)
}

// empty takes all content away from a file that was opened so. The handle is released
// where that fails.
func empty(ctx context.Context, c *Client, id mount.Inode, at mount.Handle, a *pb.Attr) error {
	if now, _ := c.replies.Stat(a); now.Size == 0 {
		return nil
	}
	h, err := c.handles.file(at)
	if err == nil {
		err = h.cut(ctx, c.limits, 0)
	}
	if err != nil {
		c.Release(id, at, 0, false)
	}
	return err
}

func (h *handle) cut(ctx context.Context, limits *timeouts.Limits, size uint64) error {
	out, cancel := limits.UntilTaken(ctx)
	defer cancel()
	return h.content.Truncate(out, size)
}

// cutLater gives a file another size with the next commit, where that is all that is to
// change. False: its node is to do it.
func cutLater(ctx context.Context, c *Client, who mount.Caller, o ids.Object, set *pb.SetAttr) (mount.AttrReply, bool) {
	others := set.Mode != nil || set.Uid != nil || set.Gid != nil || set.AtimeNs != nil || set.AtimeNow
	if !timeouts.Eventual(ctx) || set.Size == nil || others {
		return mount.AttrReply{}, false
	}
	h := c.handles.writer(o)
	if h == nil || h.seals {
		return mount.AttrReply{}, false
	}
	out, cancel := c.limits.Remotely(ctx)
	a, err := c.calls.Attr(out, o)
	cancel()
	if err != nil || !set.ByHandle && !allowed(c, a, who, writeAccess) || h.cut(ctx, c.limits, *set.Size) != nil {
		return mount.AttrReply{}, false
	}
	return c.replies.Attr(a), true
}
