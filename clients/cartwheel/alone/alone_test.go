package alone

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/pb"
)

func TestOwner_IsWhoTheActiveWillSay(t *testing.T) {
	dir := &pb.Attr{Mode: mount.TypeDir | 0o750, Uid: 1, Gid: 2}
	open := &pb.Attr{Mode: mount.TypeDir | 0o770, Uid: 1, Gid: 2}
	for _, x := range []struct {
		name string
		us   *pb.HelloResponse
		dir  *pb.Attr
		who  mount.Caller
		uid  uint32
		ok   bool
	}{
		{"before a node has said who this client is", nil, dir, mount.Caller{}, 0, false},
		{"a user's key is that user's, whoever calls", &pb.HelloResponse{Uid: 1, Gids: []uint32{7}}, dir, mount.Caller{UID: 5}, 1, true},
		{"a user who may not write", &pb.HelloResponse{Uid: 5, Gids: []uint32{2}}, dir, mount.Caller{}, 5, false},
		{"a user of the group that may write", &pb.HelloResponse{Uid: 5, Gids: []uint32{7, 2}}, open, mount.Caller{}, 5, true},
		{"a trusted host acts as its caller", &pb.HelloResponse{Trusted: true}, dir, mount.Caller{UID: 1, GID: 9}, 1, true},
		{"root may write anywhere", &pb.HelloResponse{Trusted: true}, dir, mount.Caller{}, 0, true},
	} {
		p, ok := Owner(x.us, x.dir, x.who)
		if ok != x.ok || ok && p.Uid != x.uid {
			t.Errorf("%s: got %v, %v, want uid %d, %v", x.name, p, ok, x.uid, x.ok)
		}
	}
}

func TestMayRemove_GoesByTheStickyBit(t *testing.T) {
	free, sticky := &pb.Attr{Mode: mount.TypeDir | 0o777, Uid: 1}, &pb.Attr{Mode: mount.TypeDir | 0o1777, Uid: 1}
	own, others := &pb.Attr{Uid: 5}, &pb.Attr{Uid: 6}
	for _, x := range []struct {
		name string
		dir  *pb.Attr
		uid  uint32
		o    *pb.Attr
		want bool
	}{
		{"any directory that may be written", free, 5, nil, true},
		{"one's own file", sticky, 5, own, true},
		{"another one's", sticky, 5, others, false},
		{"a file of which nothing is known", sticky, 5, nil, false},
		{"one's own directory", sticky, 1, others, true},
		{"root", sticky, 0, nil, true},
	} {
		if got := mayRemove(x.dir, &pb.Principal{Uid: x.uid}, x.o); got != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
	}
}

func TestOwns_LeavesToTheActiveWhatItMayRefuseOrAdd(t *testing.T) {
	u := func(v uint32) *uint32 { return &v }
	file := &pb.Attr{Mode: mount.TypeRegular | 0o644, Uid: 5, Gid: 7}
	for _, x := range []struct {
		name string
		a    *pb.Attr
		set  *pb.SetAttr
		uid  uint32
		want bool
	}{
		{"its owner sets the mode", file, &pb.SetAttr{Mode: u(0o600)}, 5, true},
		{"its owner sets a time to now", file, &pb.SetAttr{MtimeNow: true}, 5, true},
		{"somebody else", file, &pb.SetAttr{MtimeNow: true}, 6, false},
		{"its owner gives it away", file, &pb.SetAttr{Uid: u(6)}, 5, false},
		{"its owner says who owns it", file, &pb.SetAttr{Uid: u(5), Gid: u(7)}, 5, true},
		{"root gives it away", file, &pb.SetAttr{Uid: u(6)}, 0, true},
		{"a set-id bit comes", file, &pb.SetAttr{Mode: u(0o4755)}, 0, false},
		{"a set-id bit may go", &pb.Attr{Mode: mount.TypeRegular | 0o4755, Uid: 5}, &pb.SetAttr{Uid: u(6)}, 0, false},
		{"an ACL", &pb.Attr{Mode: mount.TypeRegular | 0o644, Uid: 5, HasAcl: true}, &pb.SetAttr{Mode: u(0o600)}, 5, false},
	} {
		if got := owns(x.a, x.set, &pb.Principal{Uid: x.uid}); got != x.want {
			t.Errorf("%s: got %v", x.name, got)
		}
	}
}
