package leases

import (
	"math"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lease"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
)

// TestKeepAlive_SharesTheListOfSlices sends the keep-alives of many clients to a
// node that knows many slices. The node goes through the slices once, not once
// for each client, and sends the list only to clients that have another one.
func TestKeepAlive_SharesTheListOfSlices(t *testing.T) {
	const slices, clients = 1000, 50
	parts := make([]*operate.Published, slices)
	for i := range parts {
		parts[i] = &operate.Published{Slice: ids.Slice(i + 1), Role: replica.RoleStandby, Row: &geoconfig.SliceRow{}}
	}
	now, walks := time.Second, 0
	s := New(Options{Config: lease.Config{Length: int64(3 * time.Second), MaxSessions: clients, MaxLeases: 1}, First: 77,
		Clock: func() time.Duration { return now }, Ended: func(_, _ uint64) {},
		Each: func(f func(*operate.Published) bool) {
			walks++
			for _, p := range parts {
				f(p)
			}
		}})
	answers := make([]*pb.KeepAliveResponse, clients)
	all := func(want int) {
		t.Helper()
		for i := range answers {
			req := &pb.KeepAliveRequest{Client: uint64(i + 1)}
			if old := answers[i]; old != nil {
				req.Session, req.List = old.Session, old.List
			}
			a, err := s.KeepAlive("peer", "user", req.Client, req)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Excepted) != want || a.List == 0 {
				t.Fatalf("client %d got %d slices as list %d, want %d", i, len(a.Excepted), a.List, want)
			}
			answers[i] = a
		}
	}
	all(slices)
	all(0)
	if walks != 1 {
		t.Errorf("the slices were gone through %d times for %d keep-alives, want once", walks, 2*clients)
	}
	now += time.Second
	all(0)
	parts = parts[1:]
	now += time.Second
	all(slices - 1)
	now += time.Second
	all(0)
	if walks > 4 {
		t.Errorf("the slices were gone through %d times", walks)
	}
	anew, err := s.KeepAlive("peer", "user", 1, &pb.KeepAliveRequest{Client: 1, Session: answers[0].Session})
	if err != nil || len(anew.Excepted) != slices-1 {
		t.Errorf("a client without a list got %d slices, %v", len(anew.Excepted), err)
	}
}

// TestExceptions_SharedListKeepsItsEnd asks twice within the time for which the
// list is shared. The second answer ends when the first does.
func TestExceptions_SharedListKeepsItsEnd(t *testing.T) {
	end, limit := int64(9*time.Second), int64(3*time.Second)
	var x exceptions
	each := func(f func(*operate.Published) bool) {
		f(operate.NewPublished(1, replica.RoleLeading, &geoconfig.SliceRow{}, replica.Time(end)))
	}
	for _, c := range []struct{ now, want int64 }{
		{1 * int64(time.Second), end},
		{1*int64(time.Second) + 1, end},
		{9*int64(time.Second) - limit/8 - 1, end},
		{9*int64(time.Second) - limit/8 + limit/freshPart, math.MaxInt64},
	} {
		if got, _, _ := x.at(c.now, limit, each); got != c.want {
			t.Errorf("at %v: until %v, want %v", time.Duration(c.now), time.Duration(got), time.Duration(c.want))
		}
	}
	x.at(10*int64(time.Second), limit, each)
	end = 13 * int64(time.Second)
	if got, _, _ := x.at(10*int64(time.Second)+limit/freshPart-1, limit, each); got == end {
		t.Error("the list was not shared")
	}
	if got, _, _ := x.at(10*int64(time.Second)+limit/freshPart, limit, each); got != end {
		t.Errorf("until %v after the slice's lease was renewed", time.Duration(got))
	}
}
