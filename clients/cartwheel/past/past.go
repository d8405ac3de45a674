// Package past shows the tree as it was at an earlier time, below the cue .Snapshot:
// it wraps a mount.FileSystem and answers for the inodes below that cue by itself. Those
// are other inodes than the present's, each of an object at one hybrid time. What they
// show never changes, so that it is kept without leases, and every change of it is
// refused. All other calls go to the file system within. The package keeps no present
// state and learns nothing for the caches of it. A FileSystem is safe for use by many
// goroutines. Its locks are held over no call.
package past

import (
	"context"
	"log/slog"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/cartwheel/tickets"
	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/cartwheel/traced"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a FileSystem. None may be missing.
type Options struct {
	// Find returns what an inode of the present stands for, and the cues that it was
	// reached under; false: it is not known.
	Find func(mount.Inode) (ids.Object, cue.Set, bool)
	// Ask sends a read to the active of a slice, as calls.Sender does.
	Ask     *calls.Sender
	Tickets *tickets.Table
	// Range reads a range of one version of a file.
	Range func(context.Context, ids.Object, content.Query) (content.Answer, error)
	// Allowed reports whether attributes give a caller what a mask asks for.
	Allowed func(a *pb.Attr, who mount.Caller, mask uint32) bool
	// Remotely returns the context for calls on behalf of one request.
	Remotely func(context.Context) (context.Context, context.CancelFunc)
	// Known is how many inodes the kernel may know at a time; beyond that it is asked
	// to give some up. 0 or less: as many as it likes.
	Known  int
	Clock  boottime.Func
	Wall   func() time.Time
	Zone   *time.Location // of times in paths that name none
	Logger *slog.Logger
}

// FileSystem is a file system of the present with the past below .Snapshot.
type FileSystem struct {
	traced.Inner
	opt    Options
	table  *table
	opened opened
	blocks *blocks
}

var (
	_ mount.FileSystem      = (*FileSystem)(nil)
	_ mount.NamelessCreator = (*FileSystem)(nil)
	_ mount.PieceReader     = (*FileSystem)(nil)
	_ mount.PathWalker      = (*FileSystem)(nil)
	_ mount.RangeCopier     = (*FileSystem)(nil)
)

// New returns a file system that shows the past, too.
func New(inner traced.Inner, o Options) *FileSystem {
	return &FileSystem{Inner: inner, opt: o, table: newTable(o.Known), blocks: newBlocks(blockBytes)}
}

// valid is how long the kernel may keep what it was shown: it never changes.
const valid = 24 * time.Hour

// Init implements mount.FileSystem.
func (f *FileSystem) Init(n mount.Notifier) {
	f.table.notify(n)
	f.Inner.Init(n)
}

// readOnly refuses a change of the past.
func readOnly(op fault.Op) error {
	return fault.E(fault.ReadOnly, op, cue.Snapshot.String(), "what is below this cue cannot be changed")
}

// within puts an operation on the terms of an inode's path. Terms of what may be old
// have no meaning in the past.
func within(ctx context.Context, n *node) (context.Context, context.CancelFunc) {
	return timeouts.Within(ctx, cue.Terms{Limit: n.cues.Terms().Limit})
}

// staleNode answers for inodes that the table does not know.
var staleNode = fault.E(fault.Stale, "past.FileSystem", "", "the node is not known")
