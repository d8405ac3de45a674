package creation

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
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
		p, ok := owner(x.us, x.dir, x.who)
		if ok != x.ok || ok && p.Uid != x.uid {
			t.Errorf("%s: got %v, %v, want uid %d, %v", x.name, p, ok, x.uid, x.ok)
		}
	}
}

func TestCheckName_RefusesCues(t *testing.T) {
	for name, want := range map[string]fault.Kind{"a": fault.None, ".a": fault.None, ".Site=a": fault.Exists, string(make([]byte, mount.NameMax+1)): fault.NameTooLong} {
		if err := CheckName(name); (err != nil) != (want != fault.None) || err != nil && !fault.Is(err, want) {
			t.Errorf("of %q: got %v, want kind %v", name, err, want)
		}
	}
}

func TestExclusive_AllowsCuesThatAFileDoesNotKeep(t *testing.T) {
	for path, want := range map[string]bool{"": false, "/.SyncLevel=2": false, "/.MaxTime=5/.WholeFile": false, "/.Site=a": true, "/.MaxTime=5/.RepLevel=2": true} {
		set, err := cue.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := keeps(set); got != want {
			t.Errorf("below %q: got %v, want %v", path, got, want)
		}
	}
}
