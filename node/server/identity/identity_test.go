package identity

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

type roster struct{ users map[string]geoconfig.User }

func (r roster) User(key string) (geoconfig.User, bool) { u, ok := r.users[key]; return u, ok }
func (r roster) Node(id ids.Node) (geoconfig.Node, bool) {
	return geoconfig.Node{ID: id}, id == "node"
}
func (r roster) Cluster() geoconfig.Cluster { return geoconfig.Cluster{ID: "c1"} }

func TestHello_AdmitsOnlyProvenKnownKeys(t *testing.T) {
	known, stranger, noUID, noGIDs := key(t), key(t), key(t), key(t)
	r := New("self", roster{map[string]geoconfig.User{known.KeyID(): {Name: "ann", UID: 7, GIDs: []uint32{8, 9}},
		noUID.KeyID(): {Name: "bob", GIDs: []uint32{8}}, noGIDs.KeyID(): {Name: "eve", UID: 7}}})
	request := func(k wire.Key, client, node string) *pb.HelloRequest {
		signature, err := k.Sign(method.HelloProof(client, node))
		if err != nil {
			t.Fatal(err)
		}
		return &pb.HelloRequest{Cluster: "c1", UserKey: k.Public(), Signature: signature, Version: 1}
	}
	for _, test := range []struct {
		name string
		req  *pb.HelloRequest
		want fault.Kind
	}{
		{"known key", request(known, "peer", "self"), fault.None},
		{"a proof made for another client", request(known, "other", "self"), fault.Unauthorized},
		{"a proof made for another node", request(known, "peer", "other"), fault.Unauthorized},
		{"a row without uid", request(noUID, "peer", "self"), fault.Unauthorized},
		{"a row without gids", request(noGIDs, "peer", "self"), fault.Unauthorized},
		{"unknown key", request(stranger, "peer", "self"), fault.Unauthorized},
		{"wrong cluster", &pb.HelloRequest{Cluster: "c2", UserKey: known.Public()}, fault.WrongCluster},
		{"newer protocol", &pb.HelloRequest{Version: 99}, fault.NewerVersion},
		{"no signature", &pb.HelloRequest{UserKey: known.Public()}, fault.Unauthorized},
	} {
		r.Forget("peer")
		_, err := r.Hello("peer", test.req)
		if got := fault.KindOf(err); got != test.want {
			t.Errorf("%s: got %v, want kind %v", test.name, err, test.want)
		}
		if _, err := r.Client("peer"); (err == nil) != (test.want == fault.None) {
			t.Errorf("%s: afterwards the client is known: %v", test.name, err == nil)
		}
	}
}

func TestActs_OnlyTrustedHostsActAsOthers(t *testing.T) {
	p := &pb.Principal{Uid: 1, Gid: 2, Groups: []uint32{3}}
	w := &Who{UID: 7, GIDs: []uint32{8}}
	if uid, gid, _ := w.Acts(p); uid != 7 || gid != 8 {
		t.Errorf("a plain user acts as %d/%d, want 7/8", uid, gid)
	}
	w.Trusted = true
	if uid, gid, groups := w.Acts(p); uid != 1 || gid != 2 || len(groups) != 1 {
		t.Errorf("a trusted host acts as %d/%d %v, want 1/2 [3]", uid, gid, groups)
	}
}

func key(t *testing.T) wire.Key {
	t.Helper()
	k, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
