// Package destination chooses the slice that a new object goes to, by the cues of
// its directory and by what the nodes have (docs/design.md, 4.11). It makes no
// object.
package destination

import (
	"context"
	"log/slog"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/route"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
)

const (
	// keptFor is how long an answer of where new objects go is believed.
	keptFor = 10 * time.Second
	// askLimit is the timeout of one question.
	askLimit = 3 * time.Second
	// pauseLength is the pause before a slice is looked for again where the nodes
	// name one that is full.
	pauseLength = 200 * time.Millisecond
)

// Options set up a Chooser. None but Site may be missing.
type Options struct {
	// Site is this client's own; empty: not known.
	Site    ids.Site
	Router  *route.Router
	Cluster *contact.Cluster
	Clock   boottime.Func
	Logger  *slog.Logger
}

// Chooser chooses slices. It is safe for use by many goroutines. Its lock guards
// what it remembers and is held over no call.
type Chooser struct {
	opt    Options
	placed placements
}

// New returns a Chooser that remembers nothing.
func New(o Options) *Chooser { return &Chooser{opt: o} }

// Choose decides which slice a new object goes to (docs/design.md, 4.11): the
// directory's, where that is kept together, or active at the site where the
// object should be and of the same policy; else the one that the nearest node
// names. If no node names one, the directory's slice is used for a while. Choose
// may block until a node answers. Again says that every slice that is named is
// full; the caller tries again after Pause.
func (d *Chooser) Choose(ctx context.Context, dir *pb.Attr, own *pb.Cues) (ids.Slice, error) {
	parent := ids.Object(dir.Object).Slice()
	cues := cue.Inherit(dir.Cues, own)
	home := d.opt.Site
	if home == "" && cues.GetSite() == "" {
		if own == nil {
			return parent, nil
		}
		home = d.siteOfActive(ctx, parent)
	}
	row, err := d.opt.Router.Row(ctx, parent)
	if err != nil {
		return 0, err
	}
	if cues.GetKeepTogether() && !row.Closed && (own == nil || own.Site == "" && own.RepLevel == 0 && own.RepSites == 0 && own.CoherenceNs == 0) {
		return parent, nil
	}
	want := cue.Policy(cues, home)
	if StaysWith(row, want, d.SiteOf(row.Active)) {
		return parent, nil
	}
	if s, ok := d.placed.get(want, d.opt.Clock()); ok {
		if s == 0 && !row.Closed {
			return parent, nil
		}
		if row, known := d.opt.Router.Known(s); known && !row.Closed {
			return s, nil
		}
	}
	s, err := d.ask(ctx, dir, cues, want.Home, row.Closed)
	switch {
	case err == nil:
		d.placed.put(want, s, d.opt.Clock()+keptFor)
		return s, nil
	case fault.Is(err, fault.Invalid):
		d.opt.Logger.Warn("cues cannot be honoured", slog.String("cues", cue.Join(cue.Kept(cues))), logattr.Err(err))
		return 0, err
	case cues.GetSite() != "" && own != nil:
		return 0, err
	case row.Closed && route.MayComeLater(err): // nothing stands in for a slice that is full
		return 0, &fault.Error{Kind: fault.Again, Op: "destination.Choose", Cause: err}
	case row.Closed:
		return 0, err
	}
	// No slice can be made now: the object goes where its directory is.
	d.placed.put(want, 0, d.opt.Clock()+keptFor)
	d.opt.Logger.Warn("new objects go to their directory's slice for a while, because there is no better one now", logattr.Err(err))
	return parent, nil
}

// StaysWith reports whether a new object of a policy goes to its directory's slice,
// of which active is the site of the active. No node is asked then.
func StaysWith(row geoconfig.SliceRow, want geoconfig.Policy, active ids.Site) bool {
	return !row.Closed && row.Policy.Equal(want) && active == want.Home
}

// IsHere reports whether new files of a directory go to its own slice, as
// Choose decides, where that is known without asking.
func (d *Chooser) IsHere(dir *pb.Attr) bool {
	parent := ids.Object(dir.Object).Slice()
	row, ok := d.opt.Router.Known(parent)
	if !ok || row.Closed {
		return false
	}
	home := d.opt.Site
	if home == "" && dir.Cues.GetSite() == "" || dir.Cues.GetKeepTogether() {
		return true
	}
	want := cue.Policy(cue.Inherit(dir.Cues, nil), home)
	if StaysWith(row, want, d.SiteOf(row.Active)) {
		return true
	}
	s, ok := d.placed.get(want, d.opt.Clock())
	return ok && s == 0
}

// Close notes that a slice takes no more objects.
func (d *Chooser) Close(ctx context.Context, s ids.Slice) {
	d.placed.drop(s)
	if row, err := d.opt.Router.Row(ctx, s); err == nil && !row.Closed {
		row.Closed = true
		d.opt.Router.Amend(row)
	}
}

// Pause waits until it makes sense to look for a slice again, after one was
// full: a node may be the last to hear that it is. False: ctx ended.
func (d *Chooser) Pause(ctx context.Context, try int) bool {
	if try < 3 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d.opt.Cluster.Jitter(pauseLength))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// SiteOf is the site of a node, empty where the node is not known.
func (d *Chooser) SiteOf(n ids.Node) ids.Site {
	row, _ := d.opt.Cluster.Node(n)
	return row.Site
}

func (d *Chooser) siteOfActive(ctx context.Context, s ids.Slice) ids.Site {
	row, err := d.opt.Router.Row(ctx, s)
	if err != nil {
		return ""
	}
	return d.SiteOf(row.Active)
}
