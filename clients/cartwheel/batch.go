package cartwheel

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Batch runs operations of root's on one slice in one entry of its log, past all
// that a client has cached, as a client without a session would. Simulations do;
// no mount does. The result tells what came of each operation that ran.
func Batch(ctx context.Context, c *Client, slice ids.Slice, b *pb.Batch) (*pb.Result, error) {
	out, cancel := c.limits.Remotely(ctx)
	defer cancel()
	return c.calls.Bare(out, slice, &pb.Operation{Op: &pb.Operation_Batch{Batch: b}})
}
