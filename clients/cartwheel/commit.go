package cartwheel

import (
	"context"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/inodes"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
)

// commitFile makes written ranges part of a file, for the content engine.
func (c *Client) commitFile(ctx context.Context, commit content.Commit) (*pb.Result, error) {
	o := commit.Object
	how, _ := commit.As.(*as)
	if how == nil {
		how = &as{p: &pb.Principal{}}
	}
	if err := c.tickets.ShowOwned(commit.Splice); err != nil {
		return nil, err
	}
	if f := c.deferred.Of(o); f != nil {
		if c.deferred.Claim(f) {
			return c.deferred.PublishClaimed(ctx, f, &commit)
		}
		if err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.locks.MayCommit(ctx, o); err != nil {
		return nil, err
	}
	before, _, known := c.names.Attr(o)
	mark := c.names.MarkChange(o)
	resp, by, err := c.calls.Operate(ctx, calls.Operation{Slice: o.Slice(), Principal: how.p, Body: commit.Body, Level: how.level,
		Op: &pb.Operation{TimeNs: commit.Splice.MtimeNs, Op: &pb.Operation_Commit{Commit: commit.Splice}}})
	if err != nil {
		if calls.IsUnknown(err) {
			c.doubt(o)
		} else if !fault.Is(err, fault.Missing) { // the kernel's pages have what was refused
			c.kernel.Invalidate(inodes.Plain(o), 0, 0)
		}
		return nil, err
	}
	if a := resp.Result.Attr; a != nil {
		c.calls.Learn(&mark, by, resp, a)
		if commit.Splice.Append && (!known || before.Size != resp.Result.Offset) {
			// The kernel put the pages where it took the end to be.
			c.kernel.Invalidate(inodes.Plain(o), 0, 0)
		}
	}
	return resp.Result, nil
}
