package tickets

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
)

// life is for how long a ticket is good.
const life = 10 * time.Second

// user is a Table of a user's key, with its clock and the renewals that it asked
// for.
type user struct {
	*Table
	now     time.Duration
	renewed []ids.Object
	renew   func(ids.Object)
}

func newUser() *user {
	u := &user{}
	u.Table = New(Options{
		Who:   func() *pb.HelloResponse { return &pb.HelloResponse{TicketNs: uint64(life)} },
		Clock: func() time.Duration { return u.now },
		Renew: func(_ context.Context, o ids.Object) {
			if u.renewed = append(u.renewed, o); u.renew != nil {
				u.renew(o)
			}
		},
	})
	return u
}

// attr is an object's attributes with tickets, of a version.
func attr(o ids.Object, version byte, ticket string) *pb.Attr {
	root := chunk.Address{version}
	return &pb.Attr{Object: uint64(o), Ticket: []byte("reached"), Content: &pb.Content{Root: root[:], Ticket: []byte(ticket)}}
}

func TestReadable_KeepsTheLastTwoVersions(t *testing.T) {
	u := newUser()
	for version := byte(1); version <= 3; version++ {
		u.Learn(attr(7, version, string('a'+rune(version))))
	}
	x := u.Of(7)
	if string(x.Reached) != "reached" {
		t.Errorf("the object was reached with %q", x.Reached)
	}
	if root, ticket := x.Current(); root != (chunk.Address{3}) || string(ticket) != "d" {
		t.Errorf("the current version is %v with %q", root[0], ticket)
	}
	for version, want := range map[byte]string{1: "", 2: "c", 3: "d"} {
		if got := x.Version(chunk.Address{version}); string(got) != want {
			t.Errorf("version %d is read with %q, want %q", version, got, want)
		}
	}
}

func TestReadable_RenewsAtHalfTime(t *testing.T) {
	u := newUser()
	ctx, root := context.Background(), chunk.Address{1}
	u.renew = func(o ids.Object) { u.Learn(attr(o, 1, "new")) }
	if got := u.Readable(ctx, 7, root); string(got) != "new" || len(u.renewed) != 1 {
		t.Errorf("a missing ticket: got %q after %d renewals", got, len(u.renewed))
	}
	u.now = life / 2
	if _ = u.Readable(ctx, 7, root); len(u.renewed) != 1 {
		t.Error("a ticket is renewed before its half time")
	}
	u.now++
	if _ = u.Readable(ctx, 7, root); len(u.renewed) != 2 {
		t.Error("a ticket is not renewed after its half time")
	}
}

func TestReadable_IsNothingForATrustedHost(t *testing.T) {
	table := New(Options{Who: func() *pb.HelloResponse { return nil }})
	if table.IsUser() || table.Readable(context.Background(), 7, chunk.Address{1}) != nil {
		t.Error("a trusted host shows a ticket")
	}
	if err := table.ShowOwned(&pb.Commit{Extents: []*pb.Extent{{Source: &pb.Extent_Chunk{Chunk: make([]byte, chunk.AddressSize)}}}}); err != nil {
		t.Errorf("a trusted host is refused: %v", err)
	}
}

func TestShowOwned_RefusesUnknownChunks(t *testing.T) {
	u := newUser()
	known, unknown := chunk.Address{1}, chunk.Address{2}
	u.Own([]chunk.Address{known, unknown}, [][]byte{[]byte("mine"), nil})
	commit := func(a chunk.Address) *pb.Commit {
		return &pb.Commit{Extents: []*pb.Extent{{}, {Source: &pb.Extent_Chunk{Chunk: a[:]}}}}
	}
	c := commit(known)
	if err := u.ShowOwned(c); err != nil || string(c.Extents[1].Owned) != "mine" {
		t.Errorf("got %q, %v", c.Extents[1].Owned, err)
	}
	if err := u.ShowOwned(commit(unknown)); !fault.Is(err, fault.Missing) {
		t.Errorf("a chunk that no node knows of: %v, want Missing", err)
	}
}

func TestWith_LeavesOutWhatHasNone(t *testing.T) {
	u := newUser()
	if u.With(1, 2) != nil {
		t.Error("there are tickets before any came")
	}
	u.Note(2, []byte("two"))
	u.Note(3, nil)
	if got := u.With(1, 2, 3); len(got) != 1 || got[0].Object != 2 || string(got[0].Ticket) != "two" {
		t.Errorf("got %v", got)
	}
}

func TestGenerations_ForgetWhatIsUnusedLongest(t *testing.T) {
	var g generations[int, int]
	const most = 4
	for i := range 3 * most {
		g.put(i, i, most)
		g.get(0, most) // stays in use
	}
	if _, ok := g.get(0, most); !ok {
		t.Error("what is used is forgotten")
	}
	if _, ok := g.get(1, most); ok {
		t.Error("what is unused is kept")
	}
	if n := len(g.young) + len(g.old); n > 2*most {
		t.Errorf("%d are kept", n)
	}
}
