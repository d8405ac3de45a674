package upkeep

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/placement"
	"cartwheel.dev/node/tree"
)

// passAgain is how long a slice stays after a hand-over began, so that one that
// fails does not stop the slice again and again.
const passAgain = 10 * time.Second

// refill checks the slices that this node leads. It closes a slice that is full.
// It replaces a member that has been failed for too long. It has members come and
// go as the policy and the nodes that are drained want it, a copy before a loss. Slices
// with the fewest copies left come first, and a bounded number of copies is made at once.
func (k *Keeper) refill(ctx context.Context) {
	if !k.o.Roster.Away().IsZero() {
		return
	}
	candidates := k.o.Slices.Candidates()
	forgetFailures(k.failedSince, k.o.Self, k.o.Roster.Slices())
	turns, room := k.inTurn(candidates)
	for _, x := range turns {
		if ctx.Err() != nil {
			return
		}
		row := x.row
		change, ok := k.wanted(ctx, row, candidates, room.Has(x.claim))
		if len(change.Add) > 0 {
			room.Take(x.claim)
		}
		if !ok {
			if to := placement.Next(&row, candidates, k.o.Distance, nil).HandOver; to != "" {
				k.passOn(ctx, row.ID, to)
			}
			continue
		}
		change.From = row.Epoch // measuring takes time, and the row may change meanwhile
		k.o.Loop.Do(func(core *replica.Node, now replica.Time) {
			if kind := core.Reconfigure(now, row.ID, change); kind != fault.None && kind != fault.Again {
				k.o.Logger.Debug("a slice could not be changed now", logattr.Slice(row.ID), slog.String("why", kind.String()))
			}
		})
	}
}

// turn is a slice that this node leads, and how urgent a copy of it is.
type turn struct {
	row   geoconfig.SliceRow
	claim repair.Claim
}

// inTurn lists the slices that this node leads, the most urgent first, and the room that
// the copies leave which are being made. A copy at a node that does not answer takes none.
func (k *Keeper) inTurn(candidates []placement.Candidate) (turns []turn, room *repair.Room) {
	room = &repair.Room{}
	away := map[ids.Node]bool{}
	for _, c := range candidates {
		away[c.Node] = c.Away
	}
	for _, row := range k.o.Leading() {
		t := turn{row, k.o.Claim(&row)}
		turns = append(turns, t)
		if slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return m.State == geoconfig.Migrating && !away[m.Node] }) {
			room.Take(t.claim)
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return repair.Compare(a.claim, b.claim) })
	return turns, room
}

// maxSliceBytes closes a slice to creation, as its number of objects does.
const maxSliceBytes = 64 << 30

// wanted says what to change in a slice's row, if anything. No member is added, and no
// distance measured for one, where there is no room for another copy.
func (k *Keeper) wanted(ctx context.Context, row geoconfig.SliceRow, candidates []placement.Candidate, room bool) (replica.Change, bool) {
	if !row.Closed && k.isFull(row.ID) {
		return replica.Change{Close: true}, true
	}
	if dead, ok := k.longFailed(row); ok && room {
		kept := row.Clone()
		kept.Members = slices.DeleteFunc(kept.Members, func(m geoconfig.Member) bool { return m.Node == dead })
		others := slices.DeleteFunc(slices.Clone(candidates), func(c placement.Candidate) bool { return c.Node == dead })
		if add, ok := k.missingMember(ctx, kept, others); ok {
			return replica.Change{Add: []geoconfig.Member{add}, Remove: []ids.Node{dead}}, true
		}
	}
	var probe placement.Probe
	if room {
		probe = k.probe(ctx)
	}
	step := placement.Next(&row, candidates, k.o.Distance, probe)
	if step.Remove != "" {
		return replica.Change{Remove: []ids.Node{step.Remove}}, true
	}
	if node, ok := k.o.Roster.Node(step.Add); step.Add != "" && ok && room {
		return replica.Change{Add: []geoconfig.Member{newMember(node)}}, true
	}
	return replica.Change{}, false
}

// passOn begins the hand-over of a slice that another member is to lead.
func (k *Keeper) passOn(ctx context.Context, id ids.Slice, to ids.Node) {
	now := k.o.Clock()
	maps.DeleteFunc(k.passed, func(_ ids.Slice, at time.Duration) bool { return now-at >= passAgain })
	if _, lately := k.passed[id]; lately {
		return
	}
	if kind, err := k.o.HandOver(ctx, id, to); err == nil && kind == fault.None {
		k.passed[id] = now
		k.o.Logger.Info("passing a slice on", logattr.Slice(id), slog.String("to", string(to)))
	}
}

// newMember is a node's part in a slice that it joins.
func newMember(n geoconfig.Node) geoconfig.Member {
	return geoconfig.Member{Node: n.ID, State: geoconfig.Migrating, Incarnation: n.Incarnation}
}

func (k *Keeper) isFull(id ids.Slice) bool {
	state, err := tree.ReadState(k.o.Committed(id))
	return err == nil && id != ids.RootSlice && (state.Objects >= k.o.MaxSliceObjects || state.Stored >= maxSliceBytes)
}

// longFailed returns a member that has been failed for longer than the limit,
// as far as this process has seen.
func (k *Keeper) longFailed(row geoconfig.SliceRow) (ids.Node, bool) {
	now := k.o.Clock()
	for _, m := range row.Members {
		key := failedMember{row.ID, m.Node}
		if m.State != geoconfig.Failed {
			delete(k.failedSince, key)
			continue
		}
		since, seen := k.failedSince[key]
		if !seen {
			k.failedSince[key] = now
		} else if now-since > k.o.FailedAfter {
			return m.Node, true
		}
	}
	return "", false
}

// forgetFailures drops what was noted of members that are in no slice of this
// node's any more. A slice that the node only does not lead at this moment stays.
func forgetFailures(since map[failedMember]time.Duration, self ids.Node, rows []geoconfig.SliceRow) {
	listed := map[failedMember]bool{}
	for i := range rows {
		for _, m := range rows[i].Members {
			listed[failedMember{rows[i].ID, m.Node}] = rows[i].Active == self
		}
	}
	maps.DeleteFunc(since, func(m failedMember, _ time.Duration) bool { return !listed[m] })
}

// failedMember names a member of a slice.
type failedMember struct {
	slice ids.Slice
	node  ids.Node
}

// probe measures until ctx ends.
func (k *Keeper) probe(ctx context.Context) placement.Probe {
	return func(from ids.Node, to []ids.Node) map[ids.Node]time.Duration { return k.o.Measure(ctx, from, to) }
}

// missingMember picks the member that a slice lacks.
func (k *Keeper) missingMember(ctx context.Context, row geoconfig.SliceRow, candidates []placement.Candidate) (geoconfig.Member, bool) {
	id, ok := placement.Missing(&row, candidates, k.o.Distance, k.probe(ctx))
	if !ok {
		return geoconfig.Member{}, false
	}
	node, ok := k.o.Roster.Node(id)
	return newMember(node), ok
}
