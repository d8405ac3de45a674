package owed

import (
	"context"
	"time"

	"cartwheel.dev/clients/cartwheel/alone"
	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// Options set up a Keeper. None may be missing.
type Options struct {
	Table *Table
	Calls *calls.Sender
	Names *names.Cache
	// Who is what the nodes take this client for; nil: not known yet.
	Who func() *pb.HelloResponse
	// IsWritten reports whether a handle of this client may write to a file.
	IsWritten func(ids.Object) bool
	// Background runs a function, unless the client ends: then it returns false.
	Background func(func(context.Context)) bool
	Wall       func() time.Time
}

// Keeper decides which changes are owed, and sends those that no commit paid.
type Keeper struct{ opt Options }

// NewKeeper returns a Keeper.
func NewKeeper(o Options) *Keeper { return &Keeper{opt: o} }

// Owe answers a change that sets owner or mode to what they are, of a file that this
// client has open for writing. The change moves the ctime, as POSIX has it. That shows
// here at once. It returns false where it is not sure that nothing else changes.
func (k *Keeper) Owe(o ids.Object, set *pb.SetAttr, who mount.Caller) (*pb.Attr, bool) {
	a, _, ok := k.opt.Names.Attr(o)
	if !ok || a.Nlink == 0 || !alone.ChangesNothing(a, set, k.opt.Who(), who) || !k.opt.Table.Add(o, k.opt.Wall().UnixNano()) {
		return nil, false
	}
	if !k.opt.IsWritten(o) { // no close comes; one that comes from now on finds it
		k.opt.Table.Drop(o)
		return nil, false
	}
	return a, true
}

// Settle has the active move a file's ctime, if no commit did it since the change.
func (k *Keeper) Settle(ctx context.Context, o ids.Object, w *calls.Writer) error {
	debt, ok := k.opt.Table.Of(o)
	if !ok {
		return nil
	}
	_, err := k.opt.Calls.Change(ctx, o, calls.Operation{Principal: w.Principal, Level: w.Level,
		Op: &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: uint64(o)}}}})
	if err == nil || fault.Is(err, fault.Stale) { // what is gone has no ctime
		k.opt.Table.Paid(o, debt)
		return nil
	}
	return err
}

// SettleLater is Settle in the background, for a change that came behind the last
// close that a program waited for, or whose close failed. It does nothing while another
// handle writes to the file.
func (k *Keeper) SettleLater(o ids.Object, w *calls.Writer) {
	if _, ok := k.opt.Table.Of(o); !ok || k.opt.IsWritten(o) {
		return
	}
	started := k.opt.Background(func(ctx context.Context) {
		_ = k.Settle(w.Under(ctx), o, w) // nobody waits for it, and it is not tried again
		k.opt.Table.Drop(o)
	})
	if !started {
		k.opt.Table.Drop(o)
	}
}
