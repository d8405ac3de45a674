package upkeep

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/repair"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/placement"
)

func TestForgetFailures_KeepsMembersOfLedSlices(t *testing.T) {
	row := func(id ids.Slice, active ids.Node, members ...ids.Node) geoconfig.SliceRow {
		r := geoconfig.SliceRow{ID: id, Active: active}
		for _, m := range members {
			r.Members = append(r.Members, geoconfig.Member{Node: m, State: geoconfig.Failed})
		}
		return r
	}
	since := map[failedMember]time.Duration{{1, "b"}: 1, {1, "c"}: 1, {2, "b"}: 1, {3, "b"}: 1}
	forgetFailures(since, "a", []geoconfig.SliceRow{row(1, "a", "a", "b"), row(2, "c", "c", "b")})
	if _, kept := since[failedMember{1, "b"}]; !kept || len(since) != 1 {
		t.Errorf("got %v, want only the failed member of the slice that this node acts for", since)
	}
}

// nodes is a roster of nodes that are all there; it knows no slices.
type nodes struct{}

func (nodes) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{ID: id, Incarnation: 4}, true
}

func (nodes) Slice(ids.Slice) (geoconfig.SliceRow, bool) { return geoconfig.SliceRow{}, false }

func (nodes) Slices() []geoconfig.SliceRow { return nil }

func (nodes) Away() time.Time { return time.Time{} }

// unmeasured finds nothing.
func unmeasured(context.Context, ids.Node, []ids.Node) map[ids.Node]time.Duration { return nil }

// TestWanted_AddsTheNearerByMeasurement has two nodes for a copy that is missing,
// and for one that failed. The one that is predicted nearer is far, or is dead.
func TestWanted_AddsTheNearerByMeasurement(t *testing.T) {
	const ms = time.Millisecond
	var now time.Duration
	for _, far := range []time.Duration{200 * ms, 0} {
		k := New(Options{Self: "a", Roster: nodes{}, FailedAfter: time.Minute, Clock: func() time.Duration { return now },
			Distance: func(_, b ids.Node) (time.Duration, bool) {
				return map[ids.Node]time.Duration{"c": 20 * ms, "d": 40 * ms, "e": 60 * ms}[b], true
			},
			Measure: func(_ context.Context, from ids.Node, to []ids.Node) map[ids.Node]time.Duration {
				if from != "a" || !slices.Equal(to, []ids.Node{"c", "d"}) {
					t.Errorf("measured from %s to %v, want from a to c and d", from, to)
				}
				return map[ids.Node]time.Duration{"c": far, "d": 45 * ms}
			}})
		candidates := []placement.Candidate{{Node: "a", Site: "a"}, {Node: "b", Site: "b"}, {Node: "c", Site: "c"}, {Node: "d", Site: "d"}, {Node: "e", Site: "e"}}
		row := geoconfig.SliceRow{ID: ids.RootSlice, Active: "a", Closed: true, Policy: geoconfig.Policy{Level: 3},
			Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Normal}}}
		if change, ok := k.wanted(t.Context(), row, candidates, true); !ok || len(change.Add) != 1 || change.Add[0].Node != "d" {
			t.Errorf("got %+v for a slice that lacks a member, want d added", change)
		}
		row.Policy.Level, row.Members[1].State = 2, geoconfig.Failed
		now = 0
		k.wanted(t.Context(), row, candidates, true)
		now = time.Minute + 1
		if change, ok := k.wanted(t.Context(), row, candidates, true); !ok || len(change.Add) != 1 || change.Add[0].Node != "d" || len(change.Remove) != 1 {
			t.Errorf("got %+v for a member that failed, want d in its place", change)
		}
	}
}

func TestWanted_ReplacesAMemberThatFailedForTooLong(t *testing.T) {
	var now time.Duration
	k := New(Options{Self: "a", Roster: nodes{}, FailedAfter: time.Minute, Clock: func() time.Duration { return now },
		Distance: func(ids.Node, ids.Node) (time.Duration, bool) { return 0, false }, Measure: unmeasured})
	row := geoconfig.SliceRow{ID: ids.RootSlice, Active: "a", Closed: true, Policy: geoconfig.Policy{Level: 2, Kind: geoconfig.Ordinary},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Failed}}}
	candidates := []placement.Candidate{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	if change, ok := k.wanted(t.Context(), row, candidates, true); ok {
		t.Errorf("got %+v when the member was first seen failed, want no change", change)
	}
	now = time.Minute
	if change, ok := k.wanted(t.Context(), row, candidates, true); ok {
		t.Errorf("got %+v at the limit, want no change", change)
	}
	now++
	change, ok := k.wanted(t.Context(), row, candidates, true)
	if !ok || len(change.Add) != 1 || change.Add[0].Node != "c" || change.Add[0].Incarnation != 4 || !slices.Equal(change.Remove, []ids.Node{"b"}) {
		t.Errorf("got %+v, want c in the place of b", change)
	}
	if change, ok := k.wanted(t.Context(), row, candidates[:2], true); ok {
		t.Errorf("got %+v where no node can take its place, want no change", change)
	}
	row.Members[1].State = geoconfig.Normal
	if change, ok := k.wanted(t.Context(), row, candidates, true); ok || len(k.failedSince) != 0 {
		t.Errorf("got %+v after the member came back, want no change and nothing remembered", change)
	}
	row.Policy.Level = 3
	if change, ok := k.wanted(t.Context(), row, candidates, true); !ok || len(change.Add) != 1 || change.Add[0].State != geoconfig.Migrating || len(change.Remove) != 0 {
		t.Errorf("got %+v for a slice that lacks a member, want c added", change)
	}
}

// atOnce runs each call on a replica core at once, in the calling goroutine.
type atOnce struct {
	Loop
	core *replica.Node
	now  replica.Time
}

func (l *atOnce) Do(fn func(*replica.Node, replica.Time)) bool { fn(l.core, l.now); return true }

// settle has the disk catch up, and returns the swaps that the core asked for.
func (l *atOnce) settle() (swaps []replica.Swap) {
	for range 20 {
		l.now += 50 * time.Millisecond
		l.core.Tick(l.now)
		out := l.core.Flush(l.now)
		if n := len(out.Records); n > 0 {
			l.core.Persisted(l.now, out.Records[n-1].Position)
		}
		swaps = append(swaps, out.Swaps...)
	}
	return swaps
}

type made struct{ Slices }

func (made) Candidates() []placement.Candidate {
	return []placement.Candidate{{Node: "a"}, {Node: "b"}, {Node: "c"}}
}

// TestRefill_ChangesOnlyTheRowThatItLookedAt has upkeep choose a member for a slice
// with one too few. In one of two runs another node joins while distances are
// measured, and upkeep must not add its own choice.
func TestRefill_ChangesOnlyTheRowThatItLookedAt(t *testing.T) {
	for _, changes := range []bool{false, true} {
		l := &atOnce{core: replica.New(replica.Config{Self: "a", Incarnation: 1, Boot: 1, Start: time.Hour}), now: time.Hour}
		row := geoconfig.SliceRow{ID: ids.RootSlice, Epoch: 1, Active: "a", Closed: true, Policy: geoconfig.Policy{Level: 2},
			Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal, Incarnation: 1}}}
		l.core.Learn(l.now, &row)
		l.settle()
		k := New(Options{Self: "a", Loop: l, Roster: nodes{}, Slices: made{}, Logger: slog.New(slog.DiscardHandler),
			Leading: func() []geoconfig.SliceRow { return []geoconfig.SliceRow{row.Clone()} }, Claim: claimOf,
			Clock: func() time.Duration { return 0 }, Distance: func(ids.Node, ids.Node) (time.Duration, bool) { return 0, false },
			Measure: func(context.Context, ids.Node, []ids.Node) map[ids.Node]time.Duration {
				if changes {
					next := row.Clone()
					next.Epoch, next.Members = 2, append(next.Members, geoconfig.Member{Node: "c", State: geoconfig.Migrating, Incarnation: 4})
					l.core.Learn(l.now, &next)
					l.settle()
				}
				return nil
			}})
		k.refill(t.Context())
		if swaps := l.settle(); (len(swaps) == 0) != changes {
			t.Errorf("the row changed meanwhile: %v; got the swaps %+v", changes, swaps)
		}
	}
}

// claimOf knows nothing of ages and orders.
func claimOf(row *geoconfig.SliceRow) repair.Claim {
	return repair.Claim{Slice: row.ID, Copies: len(row.Normals()), Level: row.Policy.Level}
}

// TestInTurn_BeginsWithTheFewestCopies has an active of four slices, one of which has a
// copy on its way to a node that answers, and one to a node that does not.
func TestInTurn_BeginsWithTheFewestCopies(t *testing.T) {
	row := func(id ids.Slice, level int, states ...geoconfig.MemberState) geoconfig.SliceRow {
		r := geoconfig.SliceRow{ID: id, Active: "a", Policy: geoconfig.Policy{Level: level}}
		for i, s := range states {
			r.Members = append(r.Members, geoconfig.Member{Node: ids.Node(rune('a' + i)), State: s})
		}
		return r
	}
	const n, m, f = geoconfig.Normal, geoconfig.Migrating, geoconfig.Failed
	k := New(Options{Claim: claimOf, Leading: func() []geoconfig.SliceRow {
		return []geoconfig.SliceRow{row(1, 3, n, n), row(2, 1, n), row(3, 3, n, n, m), row(4, 2, n), row(5, 3, n, n, f, m)}
	}})
	turns, room := k.inTurn([]placement.Candidate{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "d", Away: true}})
	var order []ids.Slice
	for _, x := range turns {
		order = append(order, x.row.ID)
	}
	if !slices.Equal(order, []ids.Slice{4, 1, 3, 5, 2}) {
		t.Errorf("got the order %v", order)
	}
	two := repair.Claim{Copies: 2, Level: 3}
	for range repair.Most - 2 {
		room.Take(two)
	}
	if !room.Has(two) {
		t.Error("the copy at the node that is away takes room")
	}
	if room.Take(two); room.Has(two) {
		t.Error("the copy that is being made takes no room")
	}
}

func TestWanted_AddsNobodyWithoutRoom(t *testing.T) {
	var now time.Duration
	k := New(Options{Self: "a", Roster: nodes{}, FailedAfter: time.Minute, Clock: func() time.Duration { return now },
		Distance: func(ids.Node, ids.Node) (time.Duration, bool) { return 0, false },
		Measure: func(context.Context, ids.Node, []ids.Node) map[ids.Node]time.Duration {
			t.Error("distances were measured for a copy that is not made now")
			return nil
		}})
	row := geoconfig.SliceRow{ID: ids.RootSlice, Active: "a", Closed: true, Policy: geoconfig.Policy{Level: 3},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Failed}}}
	candidates := []placement.Candidate{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "d"}}
	for now = range 3 {
		now *= time.Minute
		if change, ok := k.wanted(t.Context(), row, candidates, false); ok {
			t.Errorf("got %+v after %v", change, now)
		}
	}
	row.Policy.Level = 1
	row.Members = append(row.Members, geoconfig.Member{Node: "c", State: geoconfig.Normal})
	if change, ok := k.wanted(t.Context(), row, candidates, false); !ok || len(change.Remove) != 1 {
		t.Errorf("got %+v, want a surplus member to leave all the same", change)
	}
}

func TestPassOn_PausesAfterAHandOver(t *testing.T) {
	var now time.Duration
	kind, asked := fault.Again, 0
	k := New(Options{Clock: func() time.Duration { return now }, Logger: slog.New(slog.DiscardHandler),
		HandOver: func(context.Context, ids.Slice, ids.Node) (fault.Kind, error) { asked++; return kind, nil }})
	pass := func() { k.passOn(t.Context(), 1, "b") }
	pass()
	kind = fault.None
	pass()
	pass()
	if asked != 2 {
		t.Errorf("it was asked %d times, want again only after a refusal", asked)
	}
	now = passAgain
	if pass(); asked != 3 {
		t.Errorf("it was asked %d times after the pause, want once more", asked)
	}
}

func TestWanted_FollowsTheStep(t *testing.T) {
	k := New(Options{Self: "a", Roster: nodes{}, FailedAfter: time.Minute, Clock: func() time.Duration { return 0 },
		Distance: func(ids.Node, ids.Node) (time.Duration, bool) { return 0, false }, Measure: unmeasured})
	row := geoconfig.SliceRow{ID: ids.RootSlice, Active: "a", Closed: true, Policy: geoconfig.Policy{Level: 2},
		Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Normal}}}
	candidates := []placement.Candidate{{Node: "a"}, {Node: "b", Leaving: true}, {Node: "c"}}
	change, ok := k.wanted(t.Context(), row, candidates, true)
	if !ok || len(change.Add) != 1 || change.Add[0].Node != "c" || len(change.Remove) != 0 {
		t.Errorf("got %+v, want c beside b, which is drained", change)
	}
	row.Members = append(row.Members, geoconfig.Member{Node: "c", State: geoconfig.Normal})
	if change, ok := k.wanted(t.Context(), row, candidates, true); !ok || !slices.Equal(change.Remove, []ids.Node{"b"}) || len(change.Add) != 0 {
		t.Errorf("got %+v once c is normal, want b removed", change)
	}
}
