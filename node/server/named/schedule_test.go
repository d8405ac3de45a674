package named

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/inmem"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/hlc"
)

// scheduled is the lists of some nodes of one cluster.
type scheduled struct {
	t       *testing.T
	ctx     context.Context
	store   *inmem.Store
	wall    time.Time
	ahead   []time.Duration // each node's clock
	vouched []bool          // whether each node knows another machine's clock
	lists   []*List
	keys    int
}

func startScheduled(t *testing.T, nodes, level int) *scheduled {
	t.Helper()
	x := &scheduled{t: t, ctx: t.Context(), store: inmem.New(), wall: time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC)}
	t.Cleanup(func() { x.store.Close() })
	x.level(level)
	for i := range nodes {
		x.ahead, x.vouched = append(x.ahead, 0), append(x.vouched, true)
		x.lists = append(x.lists, x.list(i))
	}
	return x
}

// list is a node's, as it starts.
func (x *scheduled) list(i int) *List {
	x.t.Helper()
	wall := func() time.Time { return x.wall.Add(x.ahead[i]) }
	l, err := New(Options{
		Store: x.store, HLC: hlc.New(wall), Lease: time.Second, Wall: wall,
		Key: func(kind string) string { x.keys++; return fmt.Sprint(kind, x.keys) },
		Vouched: func() hlc.Time {
			if !x.vouched[i] {
				return 0
			}
			return hlc.FromWall(x.wall)
		},
		Clock:  func() time.Duration { return x.wall.Sub(time.Time{}.AddDate(2000, 0, 0)) },
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return l
}

// level sets what the cluster knows.
func (x *scheduled) level(n int) {
	x.t.Helper()
	c := geoconfig.Cluster{ID: "c", Secret: strings.Repeat("5", 64), Feature: n}
	if _, err := x.store.Apply(x.ctx, geoconfig.Batch{Key: "level", Cluster: &c}); err != nil {
		x.t.Fatal(err)
	}
}

// pass lets time pass, and each node look once.
func (x *scheduled) pass(d time.Duration) {
	x.t.Helper()
	x.wall = x.wall.Add(d)
	for _, l := range x.lists {
		x.wall = x.wall.Add(time.Nanosecond)
		if err := l.refresh(x.ctx); err != nil {
			x.t.Fatal(err)
		}
		l.expire(x.ctx)
		l.makeDue(x.ctx)
	}
}

// names lists the snapshots that there are.
func (x *scheduled) names() string {
	x.t.Helper()
	x.wall = x.wall.Add(time.Nanosecond)
	if err := x.lists[0].refresh(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	all, _ := x.lists[0].All()
	var out []string
	for _, s := range all {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (x *scheduled) want(when, names string) {
	x.t.Helper()
	if got := x.names(); got != names {
		x.t.Errorf("%s: got %q, want %q", when, got, names)
	}
}

func (x *scheduled) make(name string, every, keep time.Duration) {
	x.t.Helper()
	if err := x.lists[0].MakeSchedule(x.ctx, Schedule{Name: name, By: "eve", Every: every, Keep: keep}, false); err != nil {
		x.t.Fatal(err)
	}
}

// TestSchedule_MakesOneAPeriod has three nodes that all try.
func TestSchedule_MakesOneAPeriod(t *testing.T) {
	x := startScheduled(t, 3, version.Schedules)
	x.make("hourly", time.Hour, 2*time.Hour)
	x.want("before a look", "")
	x.pass(0)
	x.want("at once", "hourly-20260301T1200Z")
	x.pass(39 * time.Minute)
	x.want("in the same hour", "hourly-20260301T1200Z")
	x.pass(2 * time.Minute)
	x.want("in the next hour", "hourly-20260301T1200Z hourly-20260301T1300Z")
	x.pass(5 * time.Hour)
	x.want("after a pause of all nodes", "hourly-20260301T1800Z")
	all, _ := x.lists[0].All()
	if s := all[0]; s.ExpiresNS != s.Time.Wall().Add(2*time.Hour).UnixNano() || s.By != "schedule hourly of eve" {
		t.Errorf("got %+v, want two hours of life, made by the schedule", s)
	}
	if _, err := x.lists[1].Delete(x.ctx, "eve", "hourly", false); err != nil {
		t.Fatal(err)
	}
	x.pass(time.Hour)
	x.want("once the schedule is deleted", "hourly-20260301T1800Z")
	x.pass(time.Hour + time.Minute)
	x.want("when the last expired", "")
}

// TestSchedule_LeavesDeletedOnesAlone deletes a snapshot of the current period.
func TestSchedule_LeavesDeletedOnesAlone(t *testing.T) {
	x := startScheduled(t, 2, version.Schedules)
	x.make("daily", 24*time.Hour, 24*time.Hour)
	x.pass(0)
	x.pass(time.Second)
	if _, err := x.lists[1].Delete(x.ctx, "eve", "daily-20260301T0000Z", false); err != nil {
		t.Fatal(err)
	}
	x.pass(time.Hour)
	x.want("after it was deleted", "")
	x.pass(12 * time.Hour)
	x.want("the day after", "daily-20260302T0000Z")
}

// TestSchedule_FollowsTwoClocks has one node whose clock is ahead.
func TestSchedule_FollowsTwoClocks(t *testing.T) {
	x := startScheduled(t, 2, version.Schedules)
	x.ahead[1] = time.Hour
	x.make("hourly", time.Hour, 48*time.Hour)
	x.pass(0)
	x.want("with one clock ahead", "hourly-20260301T1200Z")
	x.vouched[1] = false
	x.pass(0)
	x.want("of a node that knows no other clock", "hourly-20260301T1200Z hourly-20260301T1300Z")
}

func TestSchedule_RefusesWhatCannotBe(t *testing.T) {
	x := startScheduled(t, 1, version.Schedules)
	x.make("hourly", time.Hour, 100*time.Hour)
	if _, err := x.lists[0].Make(x.ctx, Snapshot{Name: "nightly", By: "eve"}, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name        string
		every, keep time.Duration
		want        fault.Kind
		says        string
	}{
		{"hourly", time.Hour, time.Hour, fault.Exists, "a schedule of this name"},
		{"nightly", time.Hour, time.Hour, fault.Exists, "a snapshot of this name"},
		{"-1h", time.Hour, time.Hour, fault.Invalid, "age"},
		{"a/b", time.Hour, time.Hour, fault.Invalid, "name"},
		{strings.Repeat("a", 101), time.Hour, time.Hour, fault.Invalid, "longer"},
		{"x", 0, time.Hour, fault.Invalid, "whole minutes"},
		{"x", 90 * time.Second, time.Hour, fault.Invalid, "whole minutes"},
		{"x", -time.Minute, time.Hour, fault.Invalid, "whole minutes"},
		{"x", time.Hour, time.Minute, fault.Invalid, "for as long"},
		{"x", time.Minute, 123 * time.Minute, fault.TooLarge, "there is room for 123"},
	} {
		s := Schedule{Name: test.name, By: "eve", Every: test.every, Keep: test.keep}
		if err := x.lists[0].MakeSchedule(x.ctx, s, false); !fault.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s every %v for %v: got %v, want %v that says %q", test.name, test.every, test.keep, err, test.want, test.says)
		}
	}
	if err := x.lists[0].MakeSchedule(x.ctx, Schedule{Name: "x", Every: time.Minute, Keep: 122 * time.Minute}, true); err != nil {
		t.Errorf("what fits was refused: %v", err)
	}
	if got := x.lists[0].Schedules(); len(got) != 1 {
		t.Errorf("got %+v, want that nothing refused or dry is there", got)
	}
	if _, err := x.lists[0].Make(x.ctx, Snapshot{Name: "hourly", By: "eve"}, 0, false); !fault.Is(err, fault.Exists) {
		t.Errorf("a snapshot of a schedule's name: got %v, want %v", err, fault.Exists)
	}
	x = startScheduled(t, 1, version.Snapshots)
	if err := x.lists[0].MakeSchedule(x.ctx, Schedule{Name: "y", Every: time.Hour, Keep: time.Hour}, true); !fault.Is(err, fault.NotSupported) {
		t.Errorf("before all nodes know schedules: got %v, want %v", err, fault.NotSupported)
	}
}
