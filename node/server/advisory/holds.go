package advisory

import (
	"context"
	"log/slog"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// Holds lets go of open files whose clients are gone: a file that has no name
// any more stays as long as a client holds it. It has no state of its own; the
// slices do. It is safe for concurrent use.
type Holds struct {
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Propose runs an internal operation at a slice that this node acts for.
	Propose func(context.Context, ids.Slice, *pb.Operation) (operate.Answer, error)
	// Leading lists the rows of the slices that this node acts for.
	Leading func() []geoconfig.SliceRow
	// Live reports whether a client has a session here.
	Live   func(client uint64) bool
	Logger *slog.Logger
}

// ReleaseAbsent lets go of a slice's open files whose clients have no session
// here. It waits until the slice has ordered each release, or ctx ends.
func (h *Holds) ReleaseAbsent(ctx context.Context, id ids.Slice) {
	holders, err := tree.Holders(h.Committed(id))
	if err != nil {
		h.Logger.Error("the holders of open files could not be read", logattr.Err(err))
		return
	}
	for _, client := range holders {
		if !h.Live(client) {
			h.Release(ctx, id, client)
		}
	}
}

// ReleaseAll lets go of a client's open files in all slices that this node acts
// for. It waits as Release does.
func (h *Holds) ReleaseAll(ctx context.Context, client uint64) {
	for _, row := range h.Leading() {
		h.Release(ctx, row.ID, client)
	}
}

// Release lets go of a client's open files in a slice. It waits until the slice
// has ordered each release, or ctx ends.
func (h *Holds) Release(ctx context.Context, id ids.Slice, client uint64) {
	objects, err := tree.Holds(h.Committed(id), client)
	if err != nil {
		h.Logger.Error("a client's open files could not be read", logattr.Err(err))
		return
	}
	for _, o := range objects {
		op := &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: uint64(o), Client: client, Release: true}}}
		if _, err := h.Propose(ctx, id, op); err != nil && ctx.Err() == nil {
			h.Logger.Debug("an open file could not be let go", logattr.Object(o), logattr.Err(err))
		}
	}
}
