//go:build linux || darwin

package wire

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/framing"
	"cartwheel.dev/node/wire/unixsock"
)

// localHost makes a host that listens on a Unix socket only and counts calls.
func localHost(t *testing.T, change func(*Options)) (h *Host, served *atomic.Int32) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	times := DefaultTimes()
	times.Dial, times.Redial = 500*time.Millisecond, 0
	o := Options{Key: key, Listen: []string{"/unix" + filepath.Join(dir, "sock")}, Times: times}
	if change != nil {
		change(&o)
	}
	if h, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	served = &atomic.Int32{}
	h.Inline(1, func(r *Request) { served.Add(1); r.Reply(nil) })
	if err := h.Listen(); err != nil {
		t.Fatal(err)
	}
	return h, served
}

// dialler is a peer whose part of the handshake a test writes.
type dialler struct {
	t *testing.T
	c *unixsock.Conn
}

func newDialler(t *testing.T, to *Host) *dialler {
	t.Helper()
	address := ma.StringCast(to.Addresses()[0])
	s, err := unixsock.Dial(t.Context(), address, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &dialler{t, s}
}

func (d *dialler) selectProtocol(id protocol.ID) error {
	_, err := mss.SelectOneOf([]protocol.ID{id}, d.c)
	return err
}

// called reports whether the connection serves a call now.
func (d *dialler) called() bool {
	call := (&framing.Frame{Kind: framing.Call, Method: 1, ID: 1}).Append(nil)
	if _, err := d.c.Write(call); err != nil {
		return false
	}
	var head [framing.FixedSize]byte
	_, err := io.ReadFull(d.c, head[:])
	return err == nil && framing.Kind(head[0]) == framing.Answer
}

func (d *dialler) readsOne() bool {
	_, err := d.c.Read(make([]byte, 1))
	return err == nil
}

func TestUnixSocket_SpeaksOneHandshake(t *testing.T) {
	h, _ := localHost(t, nil)
	for _, id := range []protocol.ID{"/cartwheel/local/2", "/tls/1.0.0", "/noise"} {
		if err := newDialler(t, h).selectProtocol(id); err == nil {
			t.Errorf("the protocol %s is spoken", id)
		}
	}
}

// hooked calls before ahead of its second write.
type hooked struct {
	*unixsock.Conn
	writes int
	before func()
}

func (h *hooked) Write(b []byte) (int, error) {
	if h.writes++; h.writes == 2 {
		h.before()
	}
	return h.Conn.Write(b)
}

func TestGater_AskedBeforeAnyFrame(t *testing.T) {
	as, _ := localHost(t, nil)
	asked := make(chan string, 10)
	h, served := localHost(t, func(o *Options) {
		o.Gater = func(id string) error {
			asked <- id
			return fault.E(fault.Unauthorized, "roster", id, "")
		}
	})
	d := newDialler(t, h)
	if err := d.selectProtocol(unixsock.ID); err != nil {
		t.Fatal(err)
	}
	id, err := peer.Decode(h.id)
	if err != nil {
		t.Fatal(err)
	}
	c := &hooked{Conn: d.c, before: func() {
		if len(asked) != 0 {
			t.Error("the gater was asked about a peer that has proven nothing")
		}
	}}
	security := unixsock.Security{Identity: as.transport.identity, Lane: uint8(direct(Operation))}
	if _, err := security.SecureOutbound(t.Context(), c, id); err != nil || c.writes != 2 {
		t.Fatalf("the handshake: %v, after %d writes", err, c.writes)
	}
	if d.called() || served.Load() != 0 {
		t.Error("a refused peer was served")
	}
	if got := <-asked; got != as.id {
		t.Errorf("asked about %s, want %s", got, as.id)
	}
}

func TestHandshake_PendingOnesAreBounded(t *testing.T) {
	const few = 8
	h, served := localHost(t, func(o *Options) {
		o.Limits = DefaultLimits()
		o.Limits.PerStranger = few
		o.Times.Handshake = time.Hour // so that none is over
	})
	client, _ := localHost(t, nil)
	var open []*dialler
	for range few + 1 {
		d := newDialler(t, h)
		if err := d.selectProtocol(unixsock.ID); err != nil { // and then nothing more
			t.Fatal(err)
		}
		open = append(open, d)
	}
	cut := make(chan bool)
	for _, d := range open {
		go func() { cut <- !d.readsOne() }()
	}
	if !<-cut {
		t.Error("a handshake that does not go on is answered")
	}
	if n := h.Strangers(); n != few {
		t.Errorf("%d handshakes are under way, want %d", n, few)
	}
	for _, d := range open {
		_ = d.c.Close()
	}
	for range few {
		<-cut
	}
	if err := client.AddPeer(h.id, h.Addresses()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a proper connection", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.Call(ctx, h.id, Operation, 1, nil, nil, nil)
		return err == nil
	})
	if served.Load() == 0 {
		t.Error("nothing was served")
	}
	eventually(t, "its place to be free", func() bool { return h.Strangers() == 0 })
}

func TestHandshake_SlowOneIsCut(t *testing.T) {
	h, _ := localHost(t, func(o *Options) { o.Times.Handshake = 200 * time.Millisecond })
	d := newDialler(t, h)
	if err := d.selectProtocol(unixsock.ID); err != nil { // and then nothing more
		t.Fatal(err)
	}
	if d.readsOne() {
		t.Fatal("a handshake that does not go on is answered")
	}
	eventually(t, "its place to be free", func() bool { return h.Strangers() == 0 })
}

func TestUnixSocket_ConnectionsOfOneUserAreBounded(t *testing.T) {
	h, _ := localHost(t, func(o *Options) { o.Limits = DefaultLimits(); o.Limits.PerAddress = 3 })
	var clients []*Host
	for i := range 4 {
		c, _ := localHost(t, nil)
		clients = append(clients, c)
		if err := c.AddPeer(h.id, h.Addresses()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Call(t.Context(), h.id, Operation, 1, nil, nil, nil)
		if (err == nil) != (i < 3) {
			t.Errorf("connection %d: got %v", i, err)
		}
	}
	clients[0].Disconnect(h.id)
	eventually(t, "room for another", func() bool {
		_, err := clients[3].Call(t.Context(), h.id, Operation, 1, nil, nil, nil)
		return err == nil
	})
}

// TestUnixSocket_RefusesOtherNetworks: what looks like one machine may be emulating
// several.
func TestUnixSocket_RefusesOtherNetworks(t *testing.T) {
	h, served := localHost(t, func(o *Options) { o.Listen = append(o.Listen, "/ip4/127.0.0.1/tcp/0") })
	client := testHost(t)
	client.transport.identity.Place[0] ^= 1
	if err := client.AddPeer(h.id, h.Addresses()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), h.id, Operation, 1, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if client.currentLink(h.id, Operation).isLocal() || served.Load() != 1 {
		t.Error("a peer of another network is reached over a socket")
	}
}
