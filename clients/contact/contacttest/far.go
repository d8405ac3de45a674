// Package contacttest is a network for tests of how clients choose nodes: dialling
// takes a while, and nobody speaks at the other end. It is no network of a cluster:
// servertest has one. A Far is safe for concurrent use.
package contacttest

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire"
)

var _ wire.Network = (*Far)(nil)

// Far is a wire.Network in which dialling a TCP port takes Times, by the port. It
// never ends for a port that has no time.
type Far struct {
	Times map[string]time.Duration

	mu      sync.Mutex // guards below
	begun   int
	reached []string
}

// Dial returns a connection that has ended, once the port's time is over.
func (f *Far) Dial(ctx context.Context, address ma.Multiaddr) (manet.Conn, error) {
	port, err := address.ValueForProtocol(ma.P_TCP)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.begun++
	f.mu.Unlock()
	var over <-chan time.Time
	if d, ok := f.Times[port]; ok {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	f.reached = append(f.reached, port)
	f.mu.Unlock()
	a, b := net.Pipe()
	_ = b.Close() // the end of the other one
	return manet.WrapNetConn(&placed{a})
}

// Listen refuses: clients listen nowhere.
func (*Far) Listen(ma.Multiaddr) (manet.Listener, error) { return nil, net.ErrClosed }

// Begun returns how many dials began.
func (f *Far) Begun() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

// Reached lists the ports in the order in which dials reached them.
func (f *Far) Reached() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reached)
}

// placed is one end of a pipe with addresses that a host understands.
type placed struct{ net.Conn }

func (*placed) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9} }
func (*placed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9} }
