package failback

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

func TestStep_HandsBackWhereTheHomeWasOut(t *testing.T) {
	const now = time.Hour
	back := sight{known: true, reached: true}
	for name, tt := range map[string]struct {
		sees         sight
		next         time.Duration
		was, refuses bool
		after        time.Duration
		stray, asked bool
	}{
		"its home is out":                        {sees: sight{known: true, out: true}, after: now, stray: true},
		"its home is still out, after a failure": {sees: sight{known: true, out: true}, next: now + 5, was: true, after: now + 5, stray: true},
		"its home is back":                       {sees: back, next: now, was: true, after: now + Pause, stray: true, asked: true},
		"its home is back and not ready yet":     {sees: back, next: now, was: true, refuses: true, after: now, stray: true, asked: true},
		"its home is back and not reached":       {sees: sight{known: true}, next: now, was: true, after: now, stray: true},
		"passing it home failed a moment ago":    {sees: back, next: now + 1, was: true, after: now + 1, stray: true},
		"an operator handed it over":             {sees: back},
		"this is its home, or it has none":       {next: now, was: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			after, stray := tt.sees.step(tt.next, tt.was, now, func() bool { asked = true; return !tt.refuses })
			if after != tt.after || stray != tt.stray || asked != tt.asked {
				t.Errorf("got %v, stray %v, passed home %v; want %v, %v, %v", after, stray, asked, tt.after, tt.stray, tt.asked)
			}
		})
	}
}

func TestReturner_HandsOnlyItsStraysBack(t *testing.T) {
	now := time.Hour
	row := func(id ids.Slice, home geoconfig.MemberState) geoconfig.SliceRow {
		return geoconfig.SliceRow{ID: id, Active: "b1", Policy: geoconfig.Policy{Home: "a"},
			Members: []geoconfig.Member{{Node: "a1", State: home}, {Node: "b1", State: geoconfig.Normal}}}
	}
	rows := []geoconfig.SliceRow{row(1, geoconfig.Failed), row(2, geoconfig.Normal)}
	var handed []ids.Slice
	r := New(Options{Self: "b1", Site: "b", Clock: func() time.Duration { return now }, Logger: slog.New(slog.DiscardHandler),
		Leading:   func() []geoconfig.SliceRow { return rows },
		Row:       func(id ids.Slice) (geoconfig.SliceRow, bool) { return rows[id-1], true },
		Node:      func(id ids.Node) (geoconfig.Node, bool) { return geoconfig.Node{ID: id, Site: ids.Site(id[:1])}, true },
		Connected: func(ids.Node) bool { return true },
		HandOver: func(_ context.Context, id ids.Slice, to ids.Node) (fault.Kind, error) {
			if to != "a1" {
				t.Errorf("slice %d goes to %s, want a1", id, to)
			}
			handed = append(handed, id)
			return fault.None, nil
		}})
	r.Step(t.Context())
	rows[0] = row(1, geoconfig.Normal)
	r.Step(t.Context())
	r.Step(t.Context()) // the hand-over is under way
	if !slices.Equal(handed, []ids.Slice{1}) {
		t.Errorf("handed over: %v, want slice 1 once", handed)
	}
	now += Pause
	if r.Step(t.Context()); !slices.Equal(handed, []ids.Slice{1, 1}) {
		t.Errorf("handed over: %v, want slice 1 again after a pause", handed)
	}
}

func TestReturner_GoesWhereThePolicyIsAtHomeNow(t *testing.T) {
	row := geoconfig.SliceRow{ID: 1, Active: "b1", Policy: geoconfig.Policy{Home: "c"},
		Members: []geoconfig.Member{{Node: "a1", State: geoconfig.Normal}, {Node: "b1", State: geoconfig.Normal}}}
	draining := true
	var handed []ids.Node
	r := New(Options{Self: "b1", Site: "b", Clock: func() time.Duration { return time.Hour }, Logger: slog.New(slog.DiscardHandler),
		Leading: func() []geoconfig.SliceRow { return []geoconfig.SliceRow{row} },
		Row:     func(ids.Slice) (geoconfig.SliceRow, bool) { return row, true },
		Node: func(id ids.Node) (geoconfig.Node, bool) {
			return geoconfig.Node{ID: id, Site: ids.Site(id[:1]), Draining: draining && id == "a1"}, true
		},
		Connected: func(ids.Node) bool { return true },
		HandOver: func(_ context.Context, _ ids.Slice, to ids.Node) (fault.Kind, error) {
			handed = append(handed, to)
			return fault.None, nil
		}})
	r.Step(t.Context())
	row.Policy.Home = "a"
	r.Step(t.Context())
	if len(handed) != 0 {
		t.Errorf("the slice was handed to %v, which is drained", handed)
	}
	draining = false
	r.Step(t.Context())
	if !slices.Equal(handed, []ids.Node{"a1"}) {
		t.Errorf("the slice was handed to %v, want its new home's member", handed)
	}
}
