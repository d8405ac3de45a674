//go:build linux || darwin

package unixsock

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"cartwheel.dev/node/wire/framing"
)

// newSecurity makes an end with a key of its own that dials on a lane.
func newSecurity(t testing.TB, lane uint8) Security {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Security{&Identity{Key: key, Self: id, Place: Place{1, 2, 3}, Lanes: []protocol.ID{"/a", "/b", "/c"},
		Logger: slog.New(slog.DiscardHandler)}, lane}
}

// listen makes a listener in a directory of its own.
func listen(t *testing.T, perUser int) (*Listener, ma.Multiaddr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire") // t.TempDir's may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	at := ma.StringCast("/unix" + filepath.Join(dir, "s"))
	l, err := Listen(at, Config{Mode: Private, PerUser: perUser, Dial: time.Second, Handshake: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return l, at
}

// pair returns both ends of a new connection.
func pair(t *testing.T, l *Listener, at ma.Multiaddr) (here, there *Conn) {
	t.Helper()
	here, err := Dial(t.Context(), at, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if there, err = l.AcceptConn(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(here.Close(), there.Close()) })
	return here, there
}

// dialler is a peer whose part of the handshake a test writes.
type dialler struct {
	t        *testing.T
	c        *Conn
	security Security
}

func (d *dialler) write(b []byte) {
	_, _ = d.c.Write(b) // a refusal shows when reading
}

// greetings exchanges greetings and takes the listener's signature.
func (d *dialler) greetings(change func(encoded []byte)) (ours, theirs *greeting, signature []byte, err error) {
	if ours, err = d.security.greet(d.security.Lane); err != nil {
		d.t.Fatal(err)
	}
	if change != nil {
		change(ours.encoded)
	}
	d.write(ours.encoded)
	if theirs, _, err = d.security.receive(d.c, d.c); err != nil {
		return nil, nil, nil, err
	}
	signature, err = framing.ReadBlock(d.c, maxSignature)
	return ours, theirs, signature, err
}

func (d *dialler) sign(role string, dialler, listener *greeting) []byte {
	signature, err := d.security.sign(role, dialler, listener)
	if err != nil {
		d.t.Fatal(err)
	}
	return signature
}

func TestSecurity_AdmitsOnlyWholeHandshakes(t *testing.T) {
	l, at := listen(t, 100)
	server, as, other := newSecurity(t, 0), newSecurity(t, 1), newSecurity(t, 1)
	const (
		atLane  = 2
		atUser  = 3
		atPlace = 2 + 5 + nonceSize
		atKey   = 2 + greetingHead
	)
	flip := func(at int) func(*dialler) {
		return func(d *dialler) {
			if _, _, _, err := d.greetings(func(b []byte) { b[at] ^= 0x40 }); err == nil {
				t.Error("the listener signed")
			}
		}
	}
	sign := func(by Security, role string, lane byte) func(*dialler) {
		return func(d *dialler) {
			ours, theirs, _, err := d.greetings(nil)
			if err != nil {
				t.Fatal(err)
			}
			ours.encoded[atLane] = lane
			d.security = by
			d.write(d.sign(role, ours, theirs))
		}
	}
	var recorded []byte // a dialler's greeting and signature that were good once
	for _, tt := range []struct {
		name string
		act  func(*dialler)
		want bool
	}{
		{"a proper one", func(d *dialler) {
			ours, theirs, _, err := d.greetings(nil)
			if err != nil {
				t.Fatal(err)
			}
			signature := d.sign(roleDialler, ours, theirs)
			recorded = append(bytes.Clone(ours.encoded), signature...)
			d.write(signature)
		}, true},
		{"replayed", func(d *dialler) { d.write(recorded) }, false},
		{"signed by another key", sign(other, roleDialler, 1), false},
		{"signed as the listener", sign(as, roleListener, 1), false},
		{"signed for another lane", sign(as, roleDialler, 0), false},
		{"the listener's signature sent back", func(d *dialler) {
			_, _, signature, err := d.greetings(nil)
			if err != nil {
				t.Fatal(err)
			}
			d.write(signature)
		}, false},
		{"no signature", func(d *dialler) { _, _, _, _ = d.greetings(nil); d.write([]byte{0, 0}) }, false},
		{"frames before the signature", func(d *dialler) {
			_, _, _, _ = d.greetings(nil)
			d.write((&framing.Frame{Kind: framing.Call, Method: 1, ID: 1}).Append(nil))
		}, false},
		{"an unknown lane", flip(atLane), false},
		{"another user", flip(atUser), false},
		{"another machine", flip(atPlace), false},
		{"a key that is none", flip(atKey), false},
		{"a greeting too long", func(d *dialler) { d.write([]byte{0xff, 0xff}) }, false},
		{"a greeting too short", func(d *dialler) { d.write([]byte{1, 0, 1}) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			here, there := pair(t, l, at)
			admitted := make(chan error, 1)
			go func() {
				c, err := server.SecureInbound(context.Background(), there, "")
				if err == nil && (c.RemotePeer() != as.Self || c.ConnState().StreamMultiplexer != "/b") {
					t.Errorf("got peer %v on %v", c.RemotePeer(), c.ConnState().StreamMultiplexer)
				}
				if err != nil {
					_ = there.Close() // as a host does
				}
				admitted <- err
			}()
			tt.act(&dialler{t, here, as})
			if err := <-admitted; (err == nil) != tt.want {
				t.Errorf("got %v, want it admitted: %v", err, tt.want)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("refused after %v, not at once", d)
			}
		})
	}
}

func TestSecurity_DiallerTrustsOneListener(t *testing.T) {
	l, at := listen(t, 100)
	as, listener, other := newSecurity(t, 2), newSecurity(t, 0), newSecurity(t, 0)
	for _, tt := range []struct {
		name         string
		shown, signs Security
		role         string
		want         error
	}{
		{"its own", listener, listener, roleListener, nil},
		{"another key", other, other, roleListener, ErrStranger},
		{"another signature", listener, other, roleListener, errSignature},
		{"signed as the dialler", listener, listener, roleDialler, errSignature},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := pair(t, l, at)
			done := make(chan error, 1)
			go func() {
				theirs, _, err := tt.shown.receive(there, there)
				if err != nil {
					done <- err
					return
				}
				ours, err := tt.shown.greet(theirs.lane)
				if err != nil {
					done <- err
					return
				}
				signature, err := tt.signs.sign(tt.role, theirs, ours)
				_, _ = there.Write(append(ours.encoded, signature...))
				done <- err
			}()
			if _, err := as.SecureOutbound(t.Context(), here, listener.Self); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSecurity_RefusesOtherConnections(t *testing.T) {
	c, far := net.Pipe()
	defer c.Close()
	defer far.Close()
	if _, err := newSecurity(t, 0).SecureInbound(t.Context(), c, ""); err == nil {
		t.Error("a pipe is taken for a Unix socket")
	}
}

func TestListener_CountsConnectionsOfAUser(t *testing.T) {
	l, at := listen(t, 2)
	counted := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.users[User()] }
	_, a := pair(t, l, at)
	_, b := pair(t, l, at)
	if n := counted(); n != 2 {
		t.Errorf("%d are counted, want 2", n)
	}
	third, err := Dial(t.Context(), at, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	go func() { _, _ = l.AcceptConn() }() // until the listener closes
	if _, err := third.Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the bound is kept")
	}
	for range 2 {
		if err := a.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if n := counted(); n != 1 {
		t.Errorf("%d are counted after one closed twice, want 1", n)
	}
	b.Close()
	if n := counted(); n != 0 {
		t.Errorf("%d are counted at the end", n)
	}
}
