package wire

import (
	"context"
	"testing"
	"time"
)

// couple returns two connected hosts.
func couple(t *testing.T) (here, there *Host) {
	t.Helper()
	hosts := make([]*Host, 2)
	for i := range hosts {
		key, err := NewKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		if hosts[i], err = New(Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hosts[i].Close() }) // nothing is under way
		if err := hosts[i].Listen(); err != nil {
			t.Fatal(err)
		}
	}
	if err := hosts[0].AddPeer(hosts[1].KeyID(), hosts[1].Addresses()); err != nil {
		t.Fatal(err)
	}
	return hosts[0], hosts[1]
}

// TestSignLife_IsEnoughForAPatientCaller counts what comes of one sign.
func TestSignLife_IsEnoughForAPatientCaller(t *testing.T) {
	here, there := couple(t)
	if n := SignLife(there, here.KeyID(), Chunk); n != 0 {
		t.Errorf("%d bytes went without a connection", n)
	}
	held := make(chan *Request, 1)
	there.Inline(7, func(r *Request) { held <- r })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		b, err := here.Call(ctx, there.KeyID(), Chunk, 7, nil, nil, nil)
		b.Release()
		answered <- err
	}()
	r := <-held
	link := here.currentLink(there.KeyID(), Chunk)
	for sign := range 3 {
		before := link.conn.raw.came.Load()
		for SignLife(there, here.KeyID(), Chunk) == 0 && ctx.Err() == nil {
			<-time.After(time.Millisecond) // the last one is still being written
		}
		for link.conn.raw.came.Load() < before+lifeSign {
			select {
			case <-ctx.Done():
				t.Fatalf("sign %d: %d bytes came, want %d", sign, link.conn.raw.came.Load()-before, lifeSign)
			case <-time.After(time.Millisecond):
			}
		}
	}
	r.Reply(nil)
	if err := <-answered; err != nil {
		t.Errorf("the call that was held back: %v", err)
	}
}
