package server

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
)

// homePause is how long a slice stays after a hand-over home began, so that one
// that fails does not stop the slice again and again.
const homePause = 10 * time.Second

// comeHome passes the slices that this node took over back to their homes, as
// soon as a member there is normal again: those who write there would pay the
// wide area for every operation else. A slice is only brought home where its
// home was seen to fail while this node led it, so that an operator's hand-over
// stays.
func (s *Server) comeHome(ctx context.Context) {
	now := s.clock()
	strays := map[ids.Slice]time.Duration{}
	for id, next := range s.kept.strays { // some may only not lead at this moment
		if row, ok := s.directory.Slice(id); ok && row.Active == s.id {
			strays[id] = next
		}
	}
	for _, row := range s.leading() {
		home, known := s.atHome(row)
		w := wayHome{known: known, out: home == "", reached: home != "" && s.host.Connected(string(home), wire.Operation)}
		next, was := s.kept.strays[row.ID]
		next, stray := w.step(next, was, now, func() bool { return s.passHome(ctx, row.ID, home) })
		if stray {
			strays[row.ID] = next
		}
	}
	s.kept.strays = strays
}

// passHome begins a hand-over and reports whether it was begun. A member that
// became normal a moment ago has yet to show that it knows: nothing was stopped
// then.
func (s *Server) passHome(ctx context.Context, id ids.Slice, home ids.Node) bool {
	kind := fault.Canceled
	err := s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { kind = core.HandOver(now, id, home) })
	if err != nil || kind != fault.None {
		return false
	}
	s.log.Info("passing a slice home", "slice", uint32(id), "to", string(home))
	return true
}

// wayHome is what the node that leads a slice sees of its home.
type wayHome struct {
	known   bool // it is another site, where members are
	out     bool // none of which is normal
	reached bool // the one that is
}

// step says whether a slice is a stray, which it is since its home was seen to
// be out, and when it may be passed home at the earliest. It is passed home now
// if it may; where pass reports that nothing was begun, the next step may again.
func (w wayHome) step(next time.Duration, was bool, now time.Duration, pass func() bool) (after time.Duration, stray bool) {
	switch {
	case !w.known:
		return 0, false
	case w.out:
		return max(next, now), true
	case was && w.reached && now >= next && pass():
		return now + homePause, true
	}
	return next, was
}

// atHome returns a normal member at the slice's home, or none while all there
// are out. It is not known where the home is this node's own, or none.
func (s *Server) atHome(row geoconfig.SliceRow) (home ids.Node, known bool) {
	if row.Policy.Home == "" || string(row.Policy.Home) == s.config.Site {
		return "", false
	}
	for _, m := range row.Members {
		if n, ok := s.directory.Node(m.Node); !ok || n.Site != row.Policy.Home {
			continue
		}
		if known = true; m.State == geoconfig.Normal {
			return m.Node, true
		}
	}
	return "", known
}
