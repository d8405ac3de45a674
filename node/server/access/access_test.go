package access

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/ticket"
)

// peers is one client and one node.
type peers struct{}

func (peers) Client(peer string) (*identity.Who, error) {
	if peer != "client" {
		return nil, fault.E(fault.Unauthorized, "", peer, "")
	}
	return &identity.Who{User: "ann", Client: 7}, nil
}

func (peers) Node(peer string) error {
	if peer != "node" {
		return fault.E(fault.Unauthorized, "", peer, "")
	}
	return nil
}

// sessions has session 3, which is client 7's.
type sessions struct{}

func (sessions) Valid(session, client uint64) error {
	if session != 3 || client != 7 {
		return fault.E(fault.Unauthorized, "", "", "")
	}
	return nil
}

// Alone says that session 3 has directory 5 exclusively.
func (s sessions) Alone(session, client uint64, dir ids.Object) bool {
	return s.Valid(session, client) == nil && dir == 5
}

func newControl() *Control {
	secret := ticket.NewSecret([32]byte{1})
	return &Control{Peers: peers{}, Sessions: sessions{}, Tickets: &ticket.Sealer{Secret: func() string { return secret }, Wall: time.Now}}
}

func TestCaller_IsTheUserOrTheSystem(t *testing.T) {
	c := newControl()
	if w, err := c.Caller("client"); err != nil || w.User != "ann" || w.Trusted {
		t.Errorf("a client: got %+v, %v", w, err)
	}
	if w, err := c.Caller("node"); err != nil || !w.Trusted || w.Admin || w.Client != 0 {
		t.Errorf("a node: got %+v, %v", w, err)
	}
	if _, err := c.Caller("stranger"); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a stranger: got %v, want unauthorized", err)
	}
}

func TestOwnSession_IsNoneOfAnotherClient(t *testing.T) {
	c := newControl()
	for _, x := range []struct{ client, session, want uint64 }{{7, 3, 3}, {8, 3, 0}, {7, 4, 0}, {7, 0, 0}} {
		if got := c.OwnSession(&identity.Who{Client: x.client}, x.session); got != x.want {
			t.Errorf("client %d, session %d: got %d, want %d", x.client, x.session, got, x.want)
		}
	}
}

func TestMayNameChunks_WantsATicketOfUsers(t *testing.T) {
	c := newControl()
	ann, bob, host := &identity.Who{User: "ann", UID: 1}, &identity.Who{User: "bob", UID: 2}, &identity.Who{User: "host", Trusted: true}
	a := chunk.Sum([]byte("content"))
	owned := c.Owned(ann, a[:], nil)
	if len(owned) != 1 || len(c.Owned(host, a[:], nil)) != 0 {
		t.Fatalf("got %d tickets, want one for a user and none for a trusted host", len(owned))
	}
	commit := func(t []byte) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Extents: []*pb.Extent{{Source: &pb.Extent_Chunk{Chunk: a[:]}, Owned: t}}}}}
	}
	for _, x := range []struct {
		name   string
		who    *identity.Who
		ticket []byte
		ok     bool
	}{
		{"a user with its ticket", ann, owned[0], true},
		{"a user without", ann, nil, false},
		{"another user with that ticket", bob, owned[0], false},
		{"a trusted host without", host, nil, true},
	} {
		if err := c.MayNameChunks(x.who, commit(x.ticket)); (err == nil) != x.ok || !x.ok && !fault.Is(err, fault.Missing) {
			t.Errorf("%s: got %v, want it allowed: %v", x.name, err, x.ok)
		}
	}
}

func TestOwned_LeavesOutMissingChunks(t *testing.T) {
	c := newControl()
	a, b := chunk.Sum([]byte("a")), chunk.Sum([]byte("b"))
	got := c.Owned(&identity.Who{User: "ann"}, append(a[:], b[:]...), []byte{1 << 1})
	if len(got) != 2 || len(got[0]) == 0 || len(got[1]) != 0 {
		t.Errorf("got %q, want a ticket for the first chunk alone", got)
	}
}
