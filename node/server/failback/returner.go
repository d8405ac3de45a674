package failback

import (
	"context"
	"log/slog"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
)

// Options are what a Returner is made of. Every field is needed.
type Options struct {
	Self ids.Node
	Site ids.Site
	// Leading lists the rows of the slices that this node acts for, Row returns
	// any slice's.
	Leading func() []geoconfig.SliceRow
	Row     func(ids.Slice) (geoconfig.SliceRow, bool)
	// Node returns a node's row.
	Node func(ids.Node) (geoconfig.Node, bool)
	// Connected reports whether this node has a connection to another one.
	Connected func(ids.Node) bool
	// HandOver begins a hand-over; None: it was begun.
	HandOver func(ctx context.Context, id ids.Slice, to ids.Node) (fault.Kind, error)
	Clock    func() time.Duration
	Logger   *slog.Logger
}

// Returner hands the slices that this node took over back to their homes. It
// belongs to one goroutine.
type Returner struct {
	o Options
	// strays are slices that this node leads because their home failed, and when
	// each may be handed back at the earliest.
	strays map[ids.Slice]time.Duration
	// homes are those of the slices that this node leads, as it last saw them.
	homes map[ids.Slice]ids.Site
}

// New returns a returner that has seen no home fail.
func New(o Options) *Returner { return &Returner{o: o} }

// Step hands the slices that this node took over back to their homes, as soon as
// a member there is normal again: clients that write there would pay the wide
// area for every operation else. A slice is only handed back where its home was
// seen to fail while this node led it, or where the policy names another home
// since, so that an operator's hand-over stays. Step waits for the loop.
func (r *Returner) Step(ctx context.Context) {
	now := r.o.Clock()
	strays := map[ids.Slice]time.Duration{}
	for id, next := range r.strays { // this node may only not lead some at this moment
		if row, ok := r.o.Row(id); ok && row.Active == r.o.Self {
			strays[id] = next
		}
	}
	homes := map[ids.Slice]ids.Site{}
	for _, row := range r.o.Leading() {
		home, known := r.atHome(row)
		homes[row.ID] = row.Policy.Home
		if before, led := r.homes[row.ID]; led && before != row.Policy.Home {
			strays[row.ID] = now
		}
		s := sight{known: known, out: home == "", reached: home != "" && r.o.Connected(home)}
		next, was := strays[row.ID]
		next, stray := s.step(next, was, now, func() bool { return r.handBack(ctx, row.ID, home) })
		if stray {
			strays[row.ID] = next
		} else {
			delete(strays, row.ID)
		}
	}
	r.strays, r.homes = strays, homes
}

// handBack begins a hand-over and reports whether it was begun. A member that
// became normal a moment ago has yet to show that it knows: nothing was stopped
// then.
func (r *Returner) handBack(ctx context.Context, id ids.Slice, home ids.Node) bool {
	kind, err := r.o.HandOver(ctx, id, home)
	if err != nil || kind != fault.None {
		return false
	}
	r.o.Logger.Info("passing a slice home", logattr.Slice(id), slog.String("to", string(home)))
	return true
}

// sight is what the node that leads a slice sees of its home.
type sight struct {
	known   bool // it is another site, where members are
	out     bool // none of which is normal
	reached bool // the one that is
}

// step says whether a slice is a stray, which it is since its home was seen to
// be out, and when it may be handed back at the earliest. It is handed back now
// if it may; where pass reports that nothing was begun, the next step may again.
func (s sight) step(next time.Duration, was bool, now time.Duration, pass func() bool) (after time.Duration, stray bool) {
	switch {
	case !s.known:
		return 0, false
	case s.out:
		return max(next, now), true
	case was && s.reached && now >= next && pass():
		return now + Pause, true
	}
	return next, was
}

// atHome returns a normal member at the slice's home, or none while all there
// are out or drained. It is not known where the home is this node's own, or none.
func (r *Returner) atHome(row geoconfig.SliceRow) (home ids.Node, known bool) {
	if row.Policy.Home == "" || row.Policy.Home == r.o.Site {
		return "", false
	}
	for _, m := range row.Members {
		n, ok := r.o.Node(m.Node)
		if !ok || n.Site != row.Policy.Home {
			continue
		}
		if known = true; m.State == geoconfig.Normal && !n.Draining {
			return m.Node, true
		}
	}
	return "", known
}
