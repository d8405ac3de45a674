// Package wiretest makes hosts that talk over loopback in one process, and
// breaks the links between them. It is for tests only; every host it makes is
// closed when the test ends. A Mesh is safe for use by many goroutines.
package wiretest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/node/wire"
)

// Mesh is a set of hosts that know each other's addresses.
type Mesh struct {
	Hosts []*wire.Host

	mu    sync.Mutex // guards below
	cut   map[[2]string]bool
	delay map[[2]string]time.Duration
}

// Option changes the options of host i before it is made.
type Option func(i int, o *wire.Options)

// New makes n hosts that listen on loopback and know each other. Handlers may
// be registered on them afterwards.
func New(t testing.TB, n int, options ...Option) *Mesh {
	t.Helper()
	m := &Mesh{cut: map[[2]string]bool{}, delay: map[[2]string]time.Duration{}}
	for i := range n {
		o := wire.Options{Key: Key(t, uint64(i)), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Limits: wire.DefaultLimits(), Times: Times()}
		for _, change := range options {
			change(i, &o)
		}
		h := Open(t, o)
		h.SetFilter(m.filter(h.KeyID()))
		m.Hosts = append(m.Hosts, h)
	}
	m.introduce(t)
	return m
}

// Pair makes two hosts.
func Pair(t testing.TB, options ...Option) (a, b *wire.Host) {
	t.Helper()
	m := New(t, 2, options...)
	return m.Hosts[0], m.Hosts[1]
}

// Open makes one host and lets it listen; it is closed when the test ends.
func Open(t testing.TB, o wire.Options) *wire.Host {
	t.Helper()
	h, err := wire.New(o)
	if err != nil {
		t.Fatalf("making a host: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing a host: %v", err)
		}
	})
	if err := h.Listen(); err != nil {
		t.Fatalf("listening: %v", err)
	}
	return h
}

// Socket returns the address of a Unix socket that a host may listen at.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire") // t.TempDir's may be too long for one
	if err != nil {
		t.Fatalf("making a directory for a socket: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing a socket's directory: %v", err)
		}
	})
	return "/unix" + filepath.ToSlash(filepath.Join(dir, "sock"))
}

// Local is an Option that makes hosts listen on a Unix socket too.
func Local(t testing.TB) Option {
	return func(_ int, o *wire.Options) { o.Listen = append(o.Listen, Socket(t)) }
}

// Key returns the same key for the same seed.
func Key(t testing.TB, seed uint64) wire.Key {
	t.Helper()
	var s [32]byte
	for i := range 8 {
		s[i] = byte(seed >> (8 * i))
	}
	k, err := wire.NewKey(rand.NewChaCha8(s))
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	return k
}

// Times are short, for tests.
func Times() wire.Times {
	t := wire.DefaultTimes()
	t.Dial, t.Redial, t.Probe = time.Second, 50*time.Millisecond, 100*time.Millisecond
	t.Heartbeat, t.Silence = 100*time.Millisecond, time.Second
	return t
}

func (m *Mesh) introduce(t testing.TB) {
	t.Helper()
	for _, a := range m.Hosts {
		for _, b := range m.Hosts {
			if addresses := b.Addresses(); a != b && len(addresses) > 0 {
				if err := a.AddPeer(b.KeyID(), addresses); err != nil {
					t.Fatalf("adding a peer: %v", err)
				}
			}
		}
	}
}

// Cut drops everything that host from sends to host to, and the dials of both,
// which need both directions. The other direction stays; use it twice for a
// full cut.
func (m *Mesh) Cut(from, to int, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut[m.pair(from, to)] = cut
}

// Delay delays every frame that host from sends to host to.
func (m *Mesh) Delay(from, to int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay[m.pair(from, to)] = d
}

func (m *Mesh) pair(from, to int) [2]string {
	return [2]string{m.Hosts[from].KeyID(), m.Hosts[to].KeyID()}
}

func (m *Mesh) filter(from string) wire.Filter {
	return func(to string, _ wire.Class, method wire.Method) wire.Verdict {
		m.mu.Lock()
		defer m.mu.Unlock()
		drop := m.cut[[2]string{from, to}] || method == wire.MethodDial && m.cut[[2]string{to, from}]
		return wire.Verdict{Drop: drop, Delay: m.delay[[2]string{from, to}]}
	}
}

// Wait polls until ok holds, and fails the test after ten seconds.
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}
