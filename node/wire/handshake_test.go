//go:build linux || darwin

package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
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
	t        *testing.T
	c        net.Conn
	socket   *localSocket
	security localSecurity
}

func newDialler(t *testing.T, to *Host, as *Host) *dialler {
	t.Helper()
	address := ma.StringCast(to.Addresses()[0])
	s, err := dialLocal(t.Context(), address, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &dialler{t, s, s, localSecurity{as, direct(Operation)}}
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

func (d *dialler) write(b []byte) {
	_, _ = d.c.Write(b) // a refusal shows when reading
}

// greetings exchanges greetings and takes the listener's signature.
func (d *dialler) greetings(change func(encoded []byte)) (ours, theirs *greeting, signature []byte, err error) {
	if ours, err = d.security.greet(direct(Operation)); err != nil {
		d.t.Fatal(err)
	}
	if change != nil {
		change(ours.encoded)
	}
	d.write(ours.encoded)
	if theirs, _, err = d.security.receive(d.c, d.socket); err != nil {
		return nil, nil, nil, err
	}
	signature, err = framing.ReadBlock(d.c, maxSignature)
	return ours, theirs, signature, err
}

func TestOnlyAWholeHandshakeIsLetIn(t *testing.T) {
	h, served := localHost(t, func(o *Options) { o.Times.Dial = 20 * time.Second })
	as, _ := localHost(t, nil)
	other, _ := localHost(t, nil)
	const (
		atClass = 2
		atUser  = 3
		atPlace = 2 + 5 + nonceSize
		atKey   = 2 + greetingHead
	)
	flip := func(at int) func(*dialler) bool {
		return func(d *dialler) bool {
			_, _, _, err := d.greetings(func(b []byte) { b[at] ^= 0x40 })
			return err == nil
		}
	}
	sign := func(by *Host, role string, class Class) func(*dialler) bool {
		return func(d *dialler) bool {
			ours, theirs, _, err := d.greetings(nil)
			if err != nil {
				return false
			}
			ours.encoded[atClass] = byte(class)
			signature, err := localSecurity{host: by}.sign(role, ours, theirs)
			if err != nil {
				d.t.Fatal(err)
			}
			d.write(signature)
			return d.called()
		}
	}
	var recorded []byte // a dialler's greeting and signature that were good once
	for _, tt := range []struct {
		name string
		act  func(*dialler) bool // reports whether it got anywhere
		want bool
	}{
		{"a proper one", func(d *dialler) bool {
			ours, theirs, _, err := d.greetings(nil)
			if err != nil {
				return false
			}
			signature, err := d.security.sign(roleDialler, ours, theirs)
			if err != nil {
				d.t.Fatal(err)
			}
			recorded = append(bytes.Clone(ours.encoded), signature...)
			d.write(signature)
			return d.called()
		}, true},
		{"replayed", func(d *dialler) bool { d.write(recorded); return skipGreeting(d) && d.called() }, false},
		{"signed by another key", sign(other, roleDialler, Operation), false},
		{"signed as the listener", sign(as, roleListener, Operation), false},
		{"signed for another class", sign(as, roleDialler, Beacon), false},
		{"the listener's signature sent back", func(d *dialler) bool {
			_, _, signature, err := d.greetings(nil)
			if err != nil {
				return false
			}
			d.write(signature)
			return d.called()
		}, false},
		{"no signature", func(d *dialler) bool {
			if _, _, _, err := d.greetings(nil); err != nil {
				return false
			}
			d.write([]byte{0, 0})
			return d.called()
		}, false},
		{"frames before the signature", func(d *dialler) bool {
			if _, _, _, err := d.greetings(nil); err != nil {
				return false
			}
			return d.called()
		}, false},
		{"an unknown class", flip(atClass), false},
		{"another user", flip(atUser), false},
		{"another machine", flip(atPlace), false},
		{"a key that is none", flip(atKey), false},
		{"a greeting too long", func(d *dialler) bool { d.write([]byte{0xff, 0xff}); return d.readsOne() }, false},
		{"a greeting too short", func(d *dialler) bool { d.write([]byte{1, 0, 1}); return d.readsOne() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, start := served.Load(), time.Now()
			d := newDialler(t, h, as)
			if err := d.selectProtocol(localID); err != nil {
				t.Fatal(err)
			}
			if got := tt.act(d); got != tt.want {
				t.Errorf("got let in %v, want %v", got, tt.want)
			}
			if d := time.Since(start); d > h.options.Times.Dial/2 {
				t.Errorf("refused after %v, not at once", d)
			}
			if got := served.Load() > before; got != tt.want {
				t.Errorf("served a call: %v", got)
			}
			if !tt.want && len(h.Peers()) != 0 {
				t.Errorf("peers: got %v", h.Peers())
			}
			_ = d.c.Close()
			eventually(t, "the connection to go", func() bool { return len(h.Peers()) == 0 })
		})
	}
	for _, id := range []protocol.ID{"/cartwheel/local/2", "/tls/1.0.0", "/noise"} {
		if err := newDialler(t, h, as).selectProtocol(id); err == nil {
			t.Errorf("the protocol %s is spoken", id)
		}
	}
}

// skipGreeting takes the listener's greeting and signature.
func skipGreeting(d *dialler) bool {
	_, err := framing.ReadBlock(d.c, 1<<16-1)
	if err == nil {
		_, err = framing.ReadBlock(d.c, maxSignature)
	}
	return err == nil
}

func (d *dialler) readsOne() bool {
	_, err := d.c.Read(make([]byte, 1))
	return err == nil
}

func TestTheGaterIsAskedBeforeAnyFrame(t *testing.T) {
	as, _ := localHost(t, nil)
	asked := make(chan string, 10)
	h, served := localHost(t, func(o *Options) {
		o.Gater = func(id string) error {
			asked <- id
			return fault.E(fault.Unauthorized, "roster", id, "")
		}
	})
	d := newDialler(t, h, as)
	if err := d.selectProtocol(localID); err != nil {
		t.Fatal(err)
	}
	ours, theirs, _, err := d.greetings(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 0 {
		t.Error("the gater was asked about a peer that has proven nothing")
	}
	signature, err := d.security.sign(roleDialler, ours, theirs)
	if err != nil {
		t.Fatal(err)
	}
	d.write(signature)
	if d.called() || served.Load() != 0 {
		t.Error("a refused peer was served")
	}
	if id := <-asked; id != as.id {
		t.Errorf("asked about %s, want %s", id, as.id)
	}
}

func TestADiallerTrustsOnlyTheRightListener(t *testing.T) {
	h, _ := localHost(t, nil)
	other, _ := localHost(t, nil)
	address := other.Addresses()[0]
	for _, tt := range []struct {
		name string
		keys [2]*Host // whose key is shown, and who signs
		role string
		want error
	}{
		{"its own", [2]*Host{other, other}, roleListener, nil},
		{"another key", [2]*Host{h, h}, roleListener, errStranger},
		{"another signature", [2]*Host{other, h}, roleListener, errSignature},
		{"signed as the dialler", [2]*Host{other, other}, roleDialler, errSignature},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := socketPair(t, address)
			done := make(chan error, 1)
			go func() {
				security := localSecurity{host: tt.keys[0]}
				theirs, _, err := security.receive(there, there.local)
				if err != nil {
					done <- err
					return
				}
				ours, err := security.greet(theirs.lane)
				if err != nil {
					done <- err
					return
				}
				signature, err := localSecurity{host: tt.keys[1]}.sign(tt.role, theirs, ours)
				_, _ = there.Write(append(ours.encoded, signature...))
				done <- err
			}()
			id, err := peer.Decode(other.id)
			if err != nil {
				t.Fatal(err)
			}
			_, err = localSecurity{h, direct(Chunk)}.SecureOutbound(t.Context(), here, id)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// socketPair connects two ends over a socket of its own.
func socketPair(t *testing.T, address string) (a, b *raw) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := ma.StringCast("/unix" + filepath.Join(dir, "s"))
	here, err := dialLocal(t.Context(), at, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	there, err := newLocalSocket(c, ma.StringCast(address), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(here.Close(), there.Close()) })
	return newRaw(here), newRaw(there)
}

func TestHandshakesUnderWayAreBounded(t *testing.T) {
	const few = 8
	h, served := localHost(t, func(o *Options) {
		o.Limits = DefaultLimits()
		o.Limits.PerStranger = few
		o.Times.Handshake = time.Hour // so that none is over
	})
	client, _ := localHost(t, nil)
	var open []*dialler
	for range few + 1 {
		d := newDialler(t, h, client)
		if err := d.selectProtocol(localID); err != nil { // and then nothing more
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
	l := h.currentLink(client.id, Operation).conn.raw.local.seat.listener
	counted := func(want int) func() bool {
		return func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.users[localUser()] == want }
	}
	eventually(t, "one to be counted", counted(1))
	client.Disconnect(h.id)
	eventually(t, "the count to go", counted(0))
}

func TestAHandshakeThatTakesLongIsCut(t *testing.T) {
	h, _ := localHost(t, func(o *Options) { o.Times.Handshake = 200 * time.Millisecond })
	client, _ := localHost(t, nil)
	d := newDialler(t, h, client)
	if err := d.selectProtocol(localID); err != nil { // and then nothing more
		t.Fatal(err)
	}
	if d.readsOne() {
		t.Fatal("a handshake that does not go on is answered")
	}
	eventually(t, "its place to be free", func() bool { return h.Strangers() == 0 })
}

func TestConnectionsOfOneUserAreBounded(t *testing.T) {
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

// TestNetworksApartStayApart: what looks like one machine may be emulating
// several.
func TestNetworksApartStayApart(t *testing.T) {
	h, served := localHost(t, func(o *Options) { o.Listen = append(o.Listen, "/ip4/127.0.0.1/tcp/0") })
	client := testHost(t)
	client.place[0] ^= 1
	if err := client.AddPeer(h.id, h.Addresses()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), h.id, Operation, 1, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if client.currentLink(h.id, Operation).local() || served.Load() != 1 {
		t.Error("a peer of another network is reached over a socket")
	}
}
