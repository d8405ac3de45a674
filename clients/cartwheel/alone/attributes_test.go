package alone

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

func TestChangesNothing_OnlyWhereTheActiveWouldAgree(t *testing.T) {
	const ann, group, other = 7, 8, 9
	file := &pb.Attr{Mode: mount.TypeRegular | 0o640, Uid: ann, Gid: group}
	set := func(change func(*pb.SetAttr)) *pb.SetAttr {
		s := &pb.SetAttr{Mode: proto.Uint32(0o640), Uid: proto.Uint32(ann), Gid: proto.Uint32(group)}
		change(s)
		return s
	}
	as := func(change func(*pb.Attr)) *pb.Attr {
		a := proto.CloneOf(file)
		change(a)
		return a
	}
	all, trusted := set(func(*pb.SetAttr) {}), &pb.HelloResponse{Trusted: true}
	for _, x := range []struct {
		name string
		a    *pb.Attr
		set  *pb.SetAttr
		us   *pb.HelloResponse
		who  uint32
		want bool
	}{
		{"the owner sets all", file, all, trusted, ann, true},
		{"root sets all", file, all, trusted, 0, true},
		{"the owner sets the mode", file, &pb.SetAttr{Mode: proto.Uint32(0o640)}, trusted, ann, true},
		{"a key's own user", file, all, &pb.HelloResponse{Uid: ann}, other, true},
		{"a key's user says that it is the owner", file, all, &pb.HelloResponse{Uid: other}, ann, false},
		{"a stranger", file, all, trusted, other, false},
		{"nothing is known of this client", file, all, nil, ann, false},
		{"nothing is set", file, &pb.SetAttr{}, trusted, ann, false},
		{"another mode", file, set(func(s *pb.SetAttr) { s.Mode = proto.Uint32(0o600) }), trusted, 0, false},
		{"another owner", file, set(func(s *pb.SetAttr) { s.Uid = proto.Uint32(other) }), trusted, 0, false},
		{"another group", file, set(func(s *pb.SetAttr) { s.Gid = proto.Uint32(other) }), trusted, 0, false},
		{"a size", file, set(func(s *pb.SetAttr) { s.Size = proto.Uint64(0) }), trusted, ann, false},
		{"a time of access", file, set(func(s *pb.SetAttr) { s.AtimeNs = proto.Int64(1) }), trusted, ann, false},
		{"accessed now", file, set(func(s *pb.SetAttr) { s.AtimeNow = true }), trusted, ann, false},
		{"a time of change", file, set(func(s *pb.SetAttr) { s.MtimeNs = proto.Int64(1) }), trusted, ann, false},
		{"changed now", file, set(func(s *pb.SetAttr) { s.MtimeNow = true }), trusted, ann, false},
		{"a set-uid bit is taken away by chown", as(func(a *pb.Attr) { a.Mode |= mount.SetUID }), &pb.SetAttr{Uid: proto.Uint32(ann)}, trusted, ann, false},
		{"an ACL follows chmod", as(func(a *pb.Attr) { a.HasAcl = true }), all, trusted, ann, false},
		{"a directory", as(func(a *pb.Attr) { a.Mode = mount.TypeDir | 0o640 }), all, trusted, ann, false},
	} {
		if got := ChangesNothing(x.a, x.set, x.us, mount.Caller{UID: x.who}); got != x.want {
			t.Errorf("%s: got %v, want %v", x.name, got, x.want)
		}
	}
}
