package destination

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/contact/contacttest"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// TestAsk_AsksTheNearerByMeasurementFirst has two nodes of which nothing is known.
// The one that is named first is farther.
func TestAsk_AsksTheNearerByMeasurementFirst(t *testing.T) {
	for name, test := range map[string]struct {
		cues *pb.Cues
		want []string
	}{
		"where new objects are at home": {nil, []string{"2", "2"}}, // measured, then asked
		"not where cues say the site":   {&pb.Cues{Site: "oslo"}, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &contacttest.Far{Times: map[string]time.Duration{"1": 80 * time.Millisecond, "2": 20 * time.Millisecond}}
				d := New(Options{Cluster: clusterOf(t, n), Router: new(route.Router)})
				_, err := d.ask(t.Context(), &pb.Attr{}, test.cues, "", false)
				if !fault.Is(err, fault.Unreachable) {
					t.Errorf("got %v, want that no node can be reached", err)
				}
				if got := n.Reached(); len(got) < len(test.want) || !slices.Equal(got[:len(test.want)], test.want) {
					t.Errorf("reached %v, want %v at first", got, test.want)
				}
			})
		})
	}
}

func clusterOf(t *testing.T, n *contacttest.Far) *contact.Cluster {
	t.Helper()
	key, err := wire.NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f := contact.File{Cluster: "test", UserKey: filepath.Join(t.TempDir(), "user.key")}
	if err := os.WriteFile(f.UserKey, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"1", "2"} {
		peer, err := wire.NewKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Nodes = append(f.Nodes, "/ip4/10.0.0.2/tcp/"+port+"/p2p/"+peer.KeyID())
	}
	began := time.Now()
	c, err := contact.New(contact.Options{File: f, Network: n, Clock: func() time.Duration { return time.Since(began) + time.Hour }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
