package wire_test

import (
	"net"
	"testing"
	"time"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

// silent opens connections to a host and says nothing on them.
func silent(t *testing.T, h *wire.Host, n int) {
	t.Helper()
	_, address, err := manet.DialArgs(multiaddr.StringCast(h.Addresses()[0]))
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
}

func TestStrangers_SilentOnesShutNoPeerOut(t *testing.T) {
	m := wiretest.New(t, 3, func(i int, o *wire.Options) {
		if i == 1 {
			o.Limits.Handshakes = 8
		}
	})
	a, b, c := m.Hosts[0], m.Hosts[1], m.Hosts[2]
	for _, h := range m.Hosts {
		serveEcho(h)
	}
	silent(t, b, 100)
	if _, err := b.Call(within(t, 5*time.Second), c.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Errorf("the host itself dials: %v", err)
	}
	wiretest.Wait(t, "a peer to get in", func() bool {
		_, err := a.Call(within(t, 5*time.Second), b.KeyID(), wire.Operation, echo, nil, nil, nil)
		return err == nil
	})
}
