package destination

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// far is a network in which dialling a port takes a while and leads nowhere.
type far struct {
	times map[string]time.Duration

	mu    sync.Mutex // guards dials
	dials []string   // ports, in the order in which dialling ended
}

func (f *far) Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error) {
	port, err := address.ValueForProtocol(ma.P_TCP)
	if err != nil {
		return nil, err
	}
	t := time.NewTimer(f.times[port])
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	f.dials = append(f.dials, port)
	f.mu.Unlock()
	a, b := net.Pipe()
	_ = b.Close()
	return manet.WrapNetConn(&placed{a})
}

func (*far) Listen(ma.Multiaddr) (manet.Listener, error) { return nil, net.ErrClosed }

// placed is one end of a pipe with addresses that a host understands.
type placed struct{ net.Conn }

func (*placed) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9} }
func (*placed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9} }

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
				n := &far{times: map[string]time.Duration{"1": 80 * time.Millisecond, "2": 20 * time.Millisecond}}
				d := New(Options{Cluster: clusterOf(t, n), Router: new(route.Router)})
				_, err := d.ask(t.Context(), &pb.Attr{}, test.cues, "", false)
				if !fault.Is(err, fault.Unreachable) {
					t.Errorf("got %v, want that no node can be reached", err)
				}
				n.mu.Lock()
				defer n.mu.Unlock()
				if got := n.dials[:min(len(n.dials), len(test.want))]; !slices.Equal(got, test.want) {
					t.Errorf("dialled %v at first of %v, want %v", got, n.dials, test.want)
				}
			})
		})
	}
}

func clusterOf(t *testing.T, n *far) *contact.Cluster {
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
