package identity

import (
	"testing"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// FuzzHello feeds bytes to the one message that is decoded before its sender is
// known: nobody is admitted who does not hold a user's key.
func FuzzHello(f *testing.F) {
	known, err := wire.NewKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	add := func(m *pb.HelloRequest) {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	signature, err := known.Sign(method.HelloProof("another peer", "self"))
	if err != nil {
		f.Fatal(err)
	}
	add(&pb.HelloRequest{})
	add(&pb.HelloRequest{Cluster: "c1", UserKey: known.Public(), Signature: signature, Version: 1, Client: 7, Name: "n", Site: "s"})
	add(&pb.HelloRequest{UserKey: known.Public()[:10], Signature: signature[:63]})
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	r := New("self", roster{map[string]geoconfig.User{known.KeyID(): {Name: "ann", UID: 7, GIDs: []uint32{8}}}})
	f.Fuzz(func(t *testing.T, data []byte) {
		var req pb.HelloRequest
		if proto.Unmarshal(data, &req) != nil {
			return
		}
		if w, err := r.Hello("peer", &req); err == nil {
			t.Errorf("%+v was admitted as %+v", &req, w)
		}
		if _, ok := r.Admit("peer"); ok {
			t.Error("a peer that was refused is admitted")
		}
	})
}
