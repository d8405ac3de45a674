package repair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestCompare_OrdersByWhatIsLeft(t *testing.T) {
	inOrder := []Claim{
		{Slice: 9, Copies: 0, Level: 3, Since: 9},
		{Slice: 8, Copies: 1, Level: 3, Since: 8, First: true},
		{Slice: 7, Copies: 1, Level: 2, Since: 1},
		{Slice: 6, Copies: 1, Level: 3, Since: 2},
		{Slice: 5, Copies: 2, Level: 3, Since: 5, First: true},
		{Slice: 4, Copies: 2, Level: 3, Since: 0},
		{Slice: 1, Copies: 2, Level: 5, Since: 7},
		{Slice: 2, Copies: 2, Level: 5, Since: 7},
		{Slice: 10, Copies: 2, Level: 2, Since: 9, First: true},
		{Slice: 3, Copies: 3, Level: 3, Since: 9, Urgent: true},
		{Slice: 12, Copies: 2, Level: 2, Since: 1},
		{Slice: 11, Copies: 1, Level: 1, Since: 2},
	}
	for seed := range uint64(50) {
		got := slices.Clone(inOrder)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, Compare)
		if fmt.Sprint(got) != fmt.Sprint(inOrder) {
			t.Fatalf("got %+v", got)
		}
	}
}

func TestDisplaces_NeedsFewerCopies(t *testing.T) {
	one, two, moves := Claim{Copies: 1, Level: 3}, Claim{Copies: 2, Level: 3, First: true}, Claim{Copies: 1, Level: 1, First: true, Urgent: true}
	for _, c := range []struct {
		a, b Claim
		want bool
	}{{one, two, true}, {two, one, false}, {one, one, false}, {two, two, false}, {two, moves, true}, {moves, two, false}, {moves, moves, false}} {
		if got := Displaces(c.a, c.b); got != c.want {
			t.Errorf("%+v of %+v: got %v", c.a, c.b, got)
		}
	}
}

func TestRoom_KeepsNoneWithFewerCopiesWaiting(t *testing.T) {
	var r Room
	one, two := Claim{Copies: 1, Level: 3}, Claim{Copies: 2, Level: 3}
	for i := range Most {
		if !r.Has(two) {
			t.Fatalf("no room for copy %d", i)
		}
		r.Take(two)
	}
	if r.Has(two) || r.Has(Claim{Copies: 1, Level: 1}) {
		t.Error("there is room for more than the bound")
	}
	for i := range Most {
		if !r.Has(one) {
			t.Fatalf("copy %d of slices with one left waits for those with two", i)
		}
		r.Take(one)
	}
	if r.Has(one) {
		t.Error("there is room for more than the bound of slices with one copy")
	}
}

// roster has what the test gives it.
type roster struct {
	nodes []geoconfig.Node
	sites []geoconfig.Site
}

func (r roster) Nodes() []geoconfig.Node { return r.nodes }

func (r roster) Sites() []geoconfig.Site { return r.sites }

func TestLosses_CountFromTheFirstSightUntilAllIsWhole(t *testing.T) {
	var l Losses
	row := geoconfig.SliceRow{ID: 7, Policy: geoconfig.Policy{Level: 2}, Members: []geoconfig.Member{{Node: "a", State: geoconfig.Normal}, {Node: "b", State: geoconfig.Failed}}}
	note := func(state geoconfig.MemberState, now time.Duration) {
		row.Members[1].State = state
		l.Note(&row, now)
	}
	note(geoconfig.Failed, 5)
	note(geoconfig.Migrating, 9)
	if got := l.Since(7, 20); got != 5 {
		t.Errorf("got %v, want when it was seen first", got)
	}
	r := roster{nodes: []geoconfig.Node{{ID: "c", Fill: geoconfig.Full, Giving: &geoconfig.Giving{Slice: 7}}}, sites: []geoconfig.Site{{}, {First: []ids.Slice{3, 7}}}}
	if got, want := l.ClaimOf(&row, r, 20), (Claim{Slice: 7, Copies: 1, Level: 2, First: true, Since: 5, Urgent: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	note(geoconfig.Normal, 10)
	if got := l.Since(7, 20); got != 20 {
		t.Errorf("got %v of a slice that lacks nothing, want now", got)
	}
	note(geoconfig.Failed, 11)
	if got, want := l.ClaimOf(&row, roster{nodes: []geoconfig.Node{{ID: "c", Giving: &geoconfig.Giving{Slice: 7}}}}, 20), (Claim{Slice: 7, Copies: 1, Level: 2, Since: 11}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
