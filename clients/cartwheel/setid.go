package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/pb"
)

// dropSetID takes the set-id bits away from a file that a handle is about to
// change for somebody without privilege. Commits do that too, but they come
// later, and not at all where room is reserved that is there already. The kernel
// leaves it to its file system.
func (c *Client) dropSetID(ctx context.Context, h *handle) error {
	a, _, known := c.names.Attr(h.object)
	if !known {
		if h.asked.Swap(true) {
			return nil // not at each write; its commit takes them away
		}
		var err error
		if a, err = c.calls.Fetch(ctx, h.object, calls.Wanted{Content: true}); err != nil {
			return err
		}
	}
	if !dropsSetID(a.Mode) {
		return nil
	}
	if err := c.deferred.Publish(ctx, h.object); err != nil {
		return err
	}
	a, err := c.calls.Change(ctx, h.object, calls.Operation{Principal: h.writer.Principal, Level: h.writer.Level, Op: &pb.Operation{Op: &pb.Operation_Commit{
		Commit: &pb.Commit{Object: uint64(h.object), ClearSetid: true, KeepTimes: true}}}})
	if err == nil {
		c.engine.SetVersion(a)
	}
	return err
}

// dropsSetID reports whether a change of content takes bits of a mode away.
// Set-gid without the group's right to run it is no group to run as.
func dropsSetID(mode uint32) bool {
	return mode&mount.SetUID != 0 || mode&mount.SetGID != 0 && mode&0o010 != 0
}
