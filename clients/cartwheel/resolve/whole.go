package resolve

import (
	"context"
	"sync"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/ids"
)

// Of the objects in a directory that lie in other slices, so many are asked for
// ahead, so many at once.
const (
	maxBare     = 4096
	bareAtOnce  = 16
	wholeMarker = "" // no name
)

// Whole reads a directory in advance, with what its names name: the cue .WholeFile.
// It does nothing where all of that is known, and where it was done lately. It
// blocks until the names are here; the attributes of objects that lie in other
// slices come behind it. A directory that may not be read is left as it is.
func (r *Resolver) Whole(ctx context.Context, who mount.Caller, dir ids.Object) {
	if r.below.Bytes(dir, wholeMarker) == 0 {
		return
	}
	if !r.opt.Names.IsComplete(dir) {
		r.list(ctx, who, dir)
	}
	if list := r.opt.Names.Bare(dir, maxBare); len(list) > 0 {
		r.opt.Background(func(ctx context.Context) { r.attributes(ctx, list) })
	}
}

// attributes asks for the attributes of objects. What fails is asked for again by
// whoever needs it.
func (r *Resolver) attributes(ctx context.Context, list []names.Named) {
	slots := make(chan struct{}, bareAtOnce)
	var group sync.WaitGroup
	for _, n := range list {
		slots <- struct{}{}
		group.Go(func() {
			_, _ = r.opt.Calls.Attr(ctx, n.Object)
			<-slots
		})
	}
	group.Wait()
}
