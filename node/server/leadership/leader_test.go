package leadership

import (
	"context"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
)

// stoppedLoop is a loop that takes nothing in any more. Until says for which
// slices the node may act, and until when.
type stoppedLoop struct {
	until    map[ids.Slice]replica.Time
	yielding ids.Slice // is being handed over
}

func (stoppedLoop) Ask(context.Context, func(*replica.Node, replica.Time)) error {
	return fault.E(fault.Closed, "", "", "")
}

func (stoppedLoop) Do(func(*replica.Node, replica.Time)) bool { return false }

func (l stoppedLoop) Published(id ids.Slice) *operate.Published {
	if id == l.yielding {
		return operate.NewPublished(id, replica.RoleYielding, nil, 0)
	}
	until, ok := l.until[id]
	if !ok {
		return nil
	}
	return operate.NewPublished(id, replica.RoleLeading, nil, until)
}

func (stoppedLoop) Format(_ ids.Slice, _ int64, done func(error)) { done(nil) }

// roster has the rows of slices.
type roster []geoconfig.SliceRow

func (r roster) Slices() []geoconfig.SliceRow { return r }

func (roster) Away() time.Time { return time.Time{} }

// newLeader is one of node a, which is connected to b alone.
func newLeader(l Loop, rows ...geoconfig.SliceRow) *Leader {
	return New(Options{Self: "a", Loop: l, Roster: roster(rows), Connected: func(id ids.Node) bool { return id == "b" },
		Lease: time.Second, Clock: func() time.Duration { return 10 }})
}

func TestSuccessors_AreTheOtherNormalMembers(t *testing.T) {
	row := geoconfig.SliceRow{Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Failed},
		{Node: "c", State: geoconfig.Normal}, {Node: "d", State: geoconfig.Migrating}, {Node: "e", State: geoconfig.Normal}}}
	if got, want := Successors(row, "a"), []ids.Node{"c", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSlices_AreThoseOfALiveLease(t *testing.T) {
	l := newLeader(stoppedLoop{until: map[ids.Slice]replica.Time{1: 11, 2: 10, 3: 11}},
		geoconfig.SliceRow{ID: 1, Active: "a"}, geoconfig.SliceRow{ID: 2, Active: "a"},
		geoconfig.SliceRow{ID: 3, Active: "b"}, geoconfig.SliceRow{ID: 4, Active: "a"})
	if got := l.Slices(); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("got %v, want slice 1 alone: the lease of 2 is over, 3 is b's, and 4 is not here", got)
	}
}

func TestHandAllOver_NeedsAConnectedSuccessor(t *testing.T) {
	row := func(to ids.Node) geoconfig.SliceRow {
		return geoconfig.SliceRow{ID: 1, Active: "a", Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: to, State: geoconfig.Normal}}}
	}
	loop := stoppedLoop{until: map[ids.Slice]replica.Time{1: 11}}
	if !newLeader(loop, row("b")).handAllOver() {
		t.Error("nothing was asked of a member that is connected")
	}
	if newLeader(loop, row("c")).handAllOver() {
		t.Error("a member that is not connected was asked")
	}
	if !newLeader(stoppedLoop{yielding: 1}, row("b")).handAllOver() {
		t.Error("a hand-over under way counts for nothing")
	}
	if newLeader(stoppedLoop{yielding: 1}, geoconfig.SliceRow{ID: 1, Active: "b"}).handAllOver() {
		t.Error("a slice that another node acts for by now counts")
	}
}

func TestLeave_EndsWhereNothingCanBePassedOn(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Active: "a", Members: []geoconfig.Member{{Node: "b", State: geoconfig.Normal}}}
	leading := stoppedLoop{until: map[ids.Slice]replica.Time{1: 11}}
	never := func() bool { return false }
	newLeader(stoppedLoop{}).Leave(t.Context(), never)                      // it leads nothing
	newLeader(leading, row).Leave(t.Context(), func() bool { return true }) // its disk failed
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	newLeader(leading, row).Leave(ended, never) // its time is over
}
