package leadership

import (
	"context"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
)

// leaveEvery is how often a node that leaves looks what is left to do.
const leaveEvery = 20 * time.Millisecond

// Successors names a slice's other normal members.
func Successors(row geoconfig.SliceRow, self ids.Node) []ids.Node {
	var out []ids.Node
	for _, m := range row.Members {
		if m.Node != self && m.State == geoconfig.Normal {
			out = append(out, m.Node)
		}
	}
	return out
}

// HandOver begins a hand-over of a slice that this node acts for; None: it was
// begun.
func (l *Leader) HandOver(ctx context.Context, id ids.Slice, to ids.Node) (kind fault.Kind, err error) {
	kind = fault.Canceled
	err = l.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) { kind = core.HandOver(now, id, to) })
	return kind, err
}

// Leave passes on the slices that this node acts for, and has itself taken out of
// those in which it is a standby. A stop is then no failure: clients wait for
// neither a lease nor this node. Leave returns when nothing is left to do, when
// ctx ends, or when useless reports that nothing can be passed on any more.
func (l *Leader) Leave(ctx context.Context, useless func() bool) {
	var from time.Duration // since when it only waits to be taken out; 0: it does not
	for {
		asked := l.handAllOver()
		if !asked && from == 0 {
			from = l.o.Clock()
		}
		if useless() {
			return
		}
		if !asked && (l.standing(ctx) == 0 || l.o.Clock()-from > l.o.Lease/2) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(leaveEvery):
		}
	}
}

// handAllOver asks for a hand-over of every slice that this node acts for, and
// reports whether there was one that another node can take, or is about to: the
// clients' leases are being taken back then, and the node serves the slice no more.
func (l *Leader) handAllOver() bool {
	asked := l.yields()
	for _, row := range l.Slices() {
		to := slices.DeleteFunc(Successors(row, l.o.Self), func(id ids.Node) bool { return !l.o.Connected(id) })
		if len(to) == 0 {
			continue
		}
		asked = true
		l.o.Loop.Do(func(core *replica.Node, now replica.Time) {
			for _, id := range to {
				if core.HandOver(now, row.ID, id) != fault.Invalid { // that one may be leaving too
					return
				}
			}
		})
	}
	return asked
}

// yields reports whether a slice is being handed over. That ends, also where the other
// member goes away: the core gives up after two leases.
func (l *Leader) yields() bool {
	return slices.ContainsFunc(l.o.Roster.Slices(), func(row geoconfig.SliceRow) bool {
		p := l.o.Loop.Published(row.ID)
		return row.Active == l.o.Self && p != nil && p.Role == replica.RoleYielding
	})
}

// standing says that this node leaves, and returns in how many slices it still
// waits to be taken out.
func (l *Leader) standing(ctx context.Context) int {
	if !l.o.Roster.Away().IsZero() {
		return 0 // no row can be changed
	}
	left := 0
	err := l.o.Loop.Ask(ctx, func(core *replica.Node, now replica.Time) { left = core.Leave(now) })
	if err != nil {
		return 0 // there is no more time
	}
	return left
}
