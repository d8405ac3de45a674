package method_test

import (
	"testing"

	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestHelloProof_IsBoundToBothEnds(t *testing.T) {
	const want = "cartwheel hello 1\nclient\nnode\n" // as it is signed: it never changes
	if got := string(method.HelloProof("client", "node")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	user := wiretest.Key(t, 1)
	signature, err := user.Sign(method.HelloProof("client", "node"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client, node string
		proves       bool
	}{
		"the connection's ends":  {"client", "node", true},
		"another node":           {"client", "other", false},
		"another client":         {"other", "node", false},
		"the ends the wrong way": {"node", "client", false},
	} {
		err := wire.Verify(user.Public(), method.HelloProof(c.client, c.node), signature)
		if (err == nil) != c.proves {
			t.Errorf("%s: got %v, want it to prove: %v", name, err, c.proves)
		}
	}
}

func TestClientNumber_FollowsFromThePeer(t *testing.T) {
	const want = 0xa96f19db70f2303d // as journals have it: it never changes
	if got := method.ClientNumber("peer"); got != want {
		t.Errorf("got %#x, want %#x", got, uint64(want))
	}
	seen := map[uint64]bool{}
	for i := range uint64(100) {
		n := method.ClientNumber(wiretest.Key(t, i).KeyID())
		if n == 0 || n&1 == 0 || seen[n] {
			t.Errorf("key %d: got %#x, want another odd number for each", i, n)
		}
		seen[n] = true
	}
}
