package reading

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/ticket"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

func TestRefused_NamesTheNewestRow(t *testing.T) {
	now := time.Duration(5)
	s := &Server{
		Published: func(id ids.Slice) *operate.Published {
			return operate.NewPublished(id, replica.RoleLeading, &geoconfig.SliceRow{ID: id, Epoch: 3, Active: "a"}, 10)
		},
		Row: func(id ids.Slice) (geoconfig.SliceRow, bool) {
			return geoconfig.SliceRow{ID: id, Epoch: 4, Active: "b"}, true
		},
		Clock: func() time.Duration { return now },
	}
	if r := s.Refused(1); r != nil {
		t.Errorf("got %v while the lease lives, want no refusal", r)
	}
	if _, r := s.admit(1, &Asker{}, 2); r == nil || fault.Kind(r.Kind) != fault.WrongEpoch {
		t.Errorf("got %v for another epoch, want wrong epoch", r)
	}
	now = 10
	r := s.Refused(1)
	var row geoconfig.SliceRow
	if r == nil || fault.Kind(r.Kind) != fault.NotActive || json.Unmarshal(r.Row, &row) != nil || row.Active != "b" {
		t.Errorf("got %v after the lease, want not active with the row of epoch 4", r)
	}
}

func TestMayRead_FollowsModeOwnerAndExecution(t *testing.T) {
	owner, other := Asker{Principal: tree.Principal{UID: 1}}, Asker{Principal: tree.Principal{UID: 2}}
	for _, c := range []struct {
		name string
		who  Asker
		mode uint32
		want bool
	}{
		{"another user of a readable file", other, tree.TypeRegular | 0o644, true},
		{"another user of a private file", other, tree.TypeRegular | 0o600, false},
		{"the owner of a file without any bit", owner, tree.TypeRegular, true},
		{"another user that may execute the file", other, tree.TypeRegular | 0o711, true},
		{"another user that may search the directory", other, tree.TypeDir | 0o711, false},
	} {
		if got := mayRead(&c.who, &pb.Attr{Mode: c.mode, Uid: 1}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestStamp_TakesOutWhatAUserMayNotRead(t *testing.T) {
	secret := ticket.NewSecret([32]byte{1})
	s := &Server{Tickets: &ticket.Sealer{Secret: func() string { return secret }, Wall: time.Now}}
	root := chunk.Sum([]byte("content"))
	attr := func() *pb.Attr {
		return &pb.Attr{Object: 9, Mode: tree.TypeRegular | 0o600, Uid: 1, Content: &pb.Content{Root: root[:], Inline: []byte("bytes")},
			Xattrs: []*pb.Xattr{{Name: "user.note"}, {Name: "security.x"}}}
	}
	bob := &Asker{Principal: tree.Principal{UID: 2}, Holder: &ticket.Holder{User: "bob", UID: 2}}
	a := attr()
	s.Stamp(bob, a, chunk.Address{})
	if !a.Content.Withheld || a.Content.Inline != nil || a.Content.Ticket != nil || len(a.Xattrs) != 1 || len(a.Ticket) == 0 {
		t.Errorf("got %v, want a ticket for the object, and neither bytes nor the user's attribute", a)
	}
	ann := &Asker{Principal: tree.Principal{UID: 1}, Holder: &ticket.Holder{User: "ann", UID: 1}}
	a = attr()
	s.Stamp(ann, a, chunk.Address{})
	if a.Content.Withheld || !s.Tickets.OpenReadable(a.Content.Ticket, *ann.Holder, 9, root) || len(a.Xattrs) != 2 {
		t.Errorf("got %v, want the owner's ticket to read the version", a)
	}
	a = attr()
	s.Stamp(bob, a, root) // it could read this version before
	if a.Content.Withheld || !s.Tickets.OpenReadable(a.Content.Ticket, *bob.Holder, 9, root) {
		t.Errorf("got %v, want a ticket for the version that could be read before", a)
	}
}

func TestAgain_WaitsForWhatIsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, reads := fault.E(fault.Busy, "", "", ""), 0
		err := again(t.Context(), func() error {
			if reads++; reads < 4 {
				return busy
			}
			return nil
		})
		if err != nil || reads != 4 {
			t.Errorf("got %v after %d reads, want success with the fourth", err, reads)
		}
		began := time.Now()
		if err := again(t.Context(), func() error { return busy }); !fault.Is(err, fault.Again) || time.Since(began) != busyFor {
			t.Errorf("got %v after %v, want again after %v", err, time.Since(began), busyFor)
		}
	})
}

// remoteNode answers the attributes of an object.
type remoteNode struct {
	asked  string
	answer *pb.GetAttrResponse
}

func (n *remoteNode) Call(_ context.Context, peer string, _ wire.Class, m wire.Method, _ proto.Message, _ [][]byte, answer proto.Message) (*wire.Buffer, error) {
	if m == method.GetAttr {
		n.asked = peer
	}
	proto.Merge(answer, n.answer)
	return nil, nil
}

func TestRemote_AsksTheActive(t *testing.T) {
	n := &remoteNode{answer: &pb.GetAttrResponse{Attr: &pb.Attr{Object: 7}}}
	active := ids.Node("b")
	r := &Remote{Self: "a", Caller: n, Row: func(id ids.Slice) (geoconfig.SliceRow, bool) { return geoconfig.SliceRow{ID: id, Active: active}, true }}
	o := ids.NewObject(2, 7)
	if a, err := r.Attr(t.Context(), o, 0); err != nil || a.Object != 7 || n.asked != "b" {
		t.Errorf("got %v, %v of %q, want the active's answer", a, err, n.asked)
	}
	n.answer = &pb.GetAttrResponse{Refusal: &pb.Refusal{}}
	if _, err := r.Attr(t.Context(), o, 0); !fault.Is(err, fault.Again) {
		t.Errorf("a refusal: got %v, want again", err)
	}
	active, n.asked = "a", ""
	if _, err := r.Attr(t.Context(), o, 0); !fault.Is(err, fault.Again) || n.asked != "" {
		t.Errorf("where the row names this node: got %v, asked %q, want again", err, n.asked)
	}
}
