package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

// smallCopy is below how many bytes a range is not copied by reference: small
// content that is read and written travels with what the close sends, while a
// copy by reference commits both files first.
const smallCopy = 256 << 10

var _ mount.RangeCopier = (*Client)(nil)

// CopyRange implements mount.RangeCopier: the chunks are named to the active of
// the file that is written, and no byte crosses. NotSupported, after which a
// kernel reads and writes, where the range is small or its chunks are not all
// with that active.
func (c *Client) CopyRange(ctx context.Context, who mount.Caller, _ mount.Inode, fromID mount.Handle, at int64,
	_ mount.Inode, toID mount.Handle, to, length int64) (int64, error) {
	const op fault.Op = "cartwheel.CopyRange"
	if at < 0 || to < 0 || length < 0 {
		return 0, fault.E(fault.Invalid, op, "", "")
	}
	from, err := c.toRead(fromID, at)
	if err != nil {
		return 0, err
	}
	h, err := c.handles.file(toID)
	if err != nil {
		return 0, err
	}
	if length < smallCopy {
		return 0, fault.E(fault.NotSupported, op, h.object.String(), "read and write what is so small")
	}
	if err := c.locks.Check(toID, h.object); err != nil {
		return 0, err
	}
	ctx, done := timeouts.Within(ctx, h.terms)
	defer done()
	out, cancel := c.limits.Patiently(ctx)
	defer cancel()
	if who.UID != 0 {
		if err := c.opens.DropSetID(out, h.object, h.writer, &h.asked); err != nil {
			return 0, err
		}
	}
	n, err := h.content.CopyFrom(out, from.content, uint64(at), uint64(length), uint64(to))
	return int64(n), err
}
