package wire_test

import (
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

func TestHost_SaysThatItIsStarting(t *testing.T) {
	a := wiretest.New(t, 1).Hosts[0]
	serveEcho(a)
	b, err := wire.New(wire.Options{Key: wiretest.Key(t, 9), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Times: wiretest.Times()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.AddPeer(a.KeyID(), a.Addresses()); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 30*time.Second)
	if _, err := b.Call(ctx, a.KeyID(), wire.Operation, echo, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := a.Call(ctx, b.KeyID(), wire.Operation, echo, nil, nil, nil)
		return err
	}
	if err := ask(); !fault.Is(err, fault.Unreachable) {
		t.Errorf("it has dialled, and serves nothing yet: got %v, want that it cannot be reached", err)
	}
	if err := b.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := ask(); !fault.Is(err, fault.NotSupported) {
		t.Errorf("it serves, and not that: got %v", err)
	}
}
