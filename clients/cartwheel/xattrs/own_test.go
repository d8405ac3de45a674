package xattrs

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
)

func TestInForce_AddsThePathsCues(t *testing.T) {
	path, err := cue.ParsePath("/.Site=a/.SyncLevel=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		attr *pb.Attr
		want string
	}{
		{"a directory", &pb.Attr{Mode: mount.TypeDir}, path.String()},
		{"a file has its own persistent cues only", &pb.Attr{Mode: mount.TypeRegular, Cues: &pb.Cues{RepLevel: 2}}, ".RepLevel=2/.SyncLevel=2"},
	} {
		all, err := inForce(x.attr, path)
		if err != nil || all.String() != x.want {
			t.Errorf("%s: got %q, %v, want %q", x.name, all.String(), err, x.want)
		}
	}
}

func TestIsOwn_GoesByThePrefix(t *testing.T) {
	for name, want := range map[string]bool{whereName: true, DropCaches: true, "user.cartwheel": false, mount.AccessACL: false} {
		if IsOwn(name) != want {
			t.Errorf("of %s: got %v", name, !want)
		}
	}
}
