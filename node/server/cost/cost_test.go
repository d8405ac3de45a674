package cost_test

import (
	"strings"
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/cost"
	"cartwheel.dev/node/server/operate"
)

// counter is that of node a1, whose slice 1 has these members, each named by
// its site and a number. Site a is a1's own.
func counter(members ...geoconfig.Member) *cost.Counter {
	row := &geoconfig.SliceRow{ID: 1, Active: "a1", Members: members}
	return &cost.Counter{
		Self: "a1",
		Far:  func(peer string) bool { return !strings.HasPrefix(peer, "a") },
		Published: func(id ids.Slice) *operate.Published {
			if id != 1 {
				return nil
			}
			return operate.NewPublished(id, replica.RoleActive, row, 0)
		},
	}
}

func members(nodes ...ids.Node) (out []geoconfig.Member) {
	for _, n := range nodes {
		out = append(out, geoconfig.Member{Node: n, State: geoconfig.Normal})
	}
	return out
}

func TestCount_TurnsCommitsIntoRoundTrips(t *testing.T) {
	failed := members("a1", "a2", "b1")
	failed[2].State = geoconfig.Failed
	for _, test := range []struct {
		name       string
		members    []geoconfig.Member
		slice      ids.Slice
		waited     operate.Cost
		wan, local uint32
		bytes      uint64
	}{
		{"all members, one of them far away", members("a1", "a2", "b1"), 1, operate.Cost{Commits: 2, Bytes: 100}, 2, 0, 100},
		{"level 2 waits for the near member alone", members("a1", "a2", "b1"), 1, operate.Cost{Commits: 2, Bytes: 100, Level: 2}, 0, 2, 100},
		{"level 3 needs the far one", members("a1", "a2", "b1"), 1, operate.Cost{Commits: 1, Level: 3}, 1, 0, 0},
		{"level 1 waits for no member", members("a1", "a2", "b1"), 1, operate.Cost{Commits: 1, Level: 1}, 0, 0, 0},
		{"a failed member does not count", failed, 1, operate.Cost{Commits: 1, Bytes: 100}, 0, 1, 0},
		{"every far member gets the bytes", members("a1", "b1", "c1"), 1, operate.Cost{Commits: 1, Bytes: 100}, 1, 0, 200},
		{"sessions at this site were asked", members("a1"), 1, operate.Cost{Asked: true}, 0, 1, 0},
		{"sessions elsewhere were asked", members("a1"), 1, operate.Cost{Asked: true, AskedFar: true}, 1, 0, 0},
		{"an intent brings its own", members("a1"), 1, operate.Cost{WAN: 3, Local: 1, Far: 7}, 3, 1, 7},
		{"a slice without a row", members("a1", "b1"), 2, operate.Cost{Commits: 1}, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := counter(test.members...).Count(test.slice, test.waited)
			if test.wan+test.local == 0 {
				if got != nil {
					t.Fatalf("got %v, want nil", got)
				}
				return
			}
			if got.GetWan() != test.wan || got.GetLocal() != test.local || got.GetBytes() != test.bytes {
				t.Errorf("got %v, want %d far, %d near, %d bytes", got, test.wan, test.local, test.bytes)
			}
		})
	}
}

func TestCall_AddsItsOwnRoundTrip(t *testing.T) {
	c, answered := counter(), &pb.Spent{Wan: 1, Local: 2, Bytes: 3}
	if got, want := c.Call("b1", answered), (operate.Cost{WAN: 2, Local: 2, Far: 3}); got != want {
		t.Errorf("to another site: got %+v, want %+v", got, want)
	}
	if got, want := c.Call("a2", nil), (operate.Cost{Local: 1}); got != want {
		t.Errorf("within the site: got %+v, want %+v", got, want)
	}
}

func TestThen_AddsAndBesideTakesTheLongest(t *testing.T) {
	a, b := operate.Cost{WAN: 1, Local: 2, Far: 10}, operate.Cost{WAN: 2, Local: 1, Far: 5}
	if got, want := cost.Then(a, b), (operate.Cost{WAN: 3, Local: 3, Far: 15}); got != want {
		t.Errorf("one after the other: got %+v, want %+v", got, want)
	}
	if got, want := cost.Beside(a, b), (operate.Cost{WAN: 2, Local: 2, Far: 15}); got != want {
		t.Errorf("side by side: got %+v, want %+v", got, want)
	}
}
