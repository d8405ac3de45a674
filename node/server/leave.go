package server

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/wire"
)

// leave passes on the slices that this node leads, and has itself taken out of
// those in which it is a standby, so that a stop is no failure: clients wait
// for neither a lease nor this node.
func (s *Server) leave() {
	ctx, cancel := context.WithTimeout(s.life.ctx, s.config.Session+s.config.Lease/2)
	defer cancel()
	s.host.SetFilter(nil)
	var from time.Duration // since when it only waits to be taken out
	for {
		asked := s.handAllOver()
		if !asked && from == 0 {
			from = s.clock()
		}
		if s.failed.Load() || s.aborted.Load() {
			return // there is nothing left to pass on
		}
		if !asked && (s.standing(ctx) == 0 || s.clock()-from > s.config.Lease/2) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// handAllOver asks for a hand-over of every slice that this node leads, and
// reports whether there was one that somebody else can take.
func (s *Server) handAllOver() bool {
	asked := false
	for _, row := range s.leading() {
		to := slices.DeleteFunc(successors(row, s.id), func(id ids.Node) bool { return !s.host.Connected(string(id), wire.Operation) })
		if len(to) == 0 {
			continue
		}
		asked = true
		s.loop.Do(func(core *replica.Node, now replica.Time) {
			for _, id := range to {
				if core.HandOver(now, row.ID, id) != fault.Invalid { // that one may be leaving too
					return
				}
			}
		})
	}
	return asked
}

// handOverTo begins a hand-over of a slice that this node leads; None: it was
// begun.
func (s *Server) handOverTo(ctx context.Context, id ids.Slice, to ids.Node) (kind fault.Kind, err error) {
	kind = fault.Canceled
	err = s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { kind = core.HandOver(now, id, to) })
	return kind, err
}

// standing says that this node leaves, and returns in how many slices it still
// waits to be taken out.
func (s *Server) standing(ctx context.Context) int {
	if !s.directory.Away().IsZero() {
		return 0 // nobody can be taken out
	}
	left := 0
	err := s.loop.Ask(ctx, func(core *replica.Node, now replica.Time) { left = core.Leave(now) })
	if err != nil {
		return 0 // there is no more time
	}
	return left
}

// leading lists the rows of the slices that this node acts for.
func (s *Server) leading() []geoconfig.SliceRow {
	var out []geoconfig.SliceRow
	now := s.clock()
	for _, row := range s.directory.Slices() {
		if row.Active == s.id && s.loop.Published(row.ID).Serves(now) {
			out = append(out, row)
		}
	}
	return out
}

// successors names the other normal members.
func successors(row geoconfig.SliceRow, self ids.Node) []ids.Node {
	var out []ids.Node
	for _, m := range row.Members {
		if m.Node != self && m.State == geoconfig.Normal {
			out = append(out, m.Node)
		}
	}
	return out
}
