package relay

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	libp2p "github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
)

// Conn is a byte stream to a peer through a relay. The upgrade of a connection
// takes it instead of a socket.
type Conn struct {
	net.Conn
	Outer libp2p.CapableConn // the connection to the relay
	Relay string             // its ID
}

// LocalMultiaddr implements manet.Conn, as do the others.
func (c *Conn) LocalMultiaddr() ma.Multiaddr  { return c.Outer.LocalMultiaddr() }
func (c *Conn) RemoteMultiaddr() ma.Multiaddr { return c.Outer.RemoteMultiaddr() }
func (c *Conn) Close() error                  { return c.Outer.Close() }

// Attempt makes a connection to a peer.
type Attempt func(ctx context.Context) (libp2p.CapableConn, error)

// Paths are the ways to a peer that Connect chooses between.
type Paths struct {
	Direct  Attempt
	Relayed Attempt
	Head    time.Duration // the head start of the direct path
	Pause   time.Duration // between two attempts at the direct path
}

// result is how an attempt ended.
type result struct {
	conn libp2p.CapableConn
	err  error
}

// Connect makes a connection by the direct path. If that fails or takes longer
// than its head start, it tries a relayed path too. During the relayed attempt it
// repeats the direct one, because the direct path may heal at any moment. The
// first connection wins. No attempt is left running when Connect returns.
func Connect(ctx context.Context, p Paths) (libp2p.CapableConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looking, looked := context.WithCancel(ctx) // for a relay
	defer looked()
	failed := make(chan struct{})
	direct, relayed := make(chan result, 1), make(chan result, 1)
	go func() { // joined below
		c, err := p.Direct(ctx)
		if err != nil {
			close(failed)
			c, err = p.persist(looking, err)
		}
		direct <- result{c, err}
	}()
	timer := time.NewTimer(p.Head)
	defer timer.Stop()
	select {
	case got := <-direct: // it did not fail
		return got.conn, got.err
	case <-failed:
	case <-timer.C:
	}
	go func() { // joined below
		defer looked()
		c, err := p.Relayed(ctx)
		relayed <- result{c, err}
	}()
	return first(direct, relayed, cancel)
}

// first returns the first connection of two attempts, and ends the other.
func first(direct, relayed <-chan result, cancel func()) (libp2p.CapableConn, error) {
	var won libp2p.CapableConn
	var errs []error
	for range 2 {
		var got result
		select {
		case got = <-direct:
			direct = nil
		case got = <-relayed:
			relayed = nil
		}
		switch {
		case got.err != nil:
			errs = append(errs, got.err)
		case won == nil:
			won = got.conn
			cancel()
		default:
			_ = got.conn.Close() // a second one is not needed
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, nil
}

// persist repeats the direct attempt, which has just failed with err, until one
// succeeds or looking ends.
func (p *Paths) persist(looking context.Context, err error) (libp2p.CapableConn, error) {
	for {
		pause := time.NewTimer(p.Pause)
		select {
		case <-looking.Done():
			pause.Stop()
			return nil, err
		case <-pause.C:
		}
		c, now := p.Direct(looking)
		if now == nil {
			return c, nil
		}
		if looking.Err() == nil {
			err = now
		}
	}
}

// maxAsked bounds the hosts that Choose asks.
const maxAsked = 4

// Choose asks hosts for their round trip to a peer, all at once and at most four
// of them. It returns those that answered, the shortest round trip first. Ask
// includes the round trip to the host itself. Except are hosts not to ask.
func Choose(ctx context.Context, hosts []string, except [2]string, ask func(ctx context.Context, host string) (time.Duration, error)) []string {
	type reached struct {
		host string
		rtt  time.Duration
	}
	var asked []string
	for _, host := range hosts {
		if !slices.Contains(except[:], host) && !slices.Contains(asked, host) && len(asked) < maxAsked {
			asked = append(asked, host)
		}
	}
	answers := make(chan reached, len(asked))
	for _, host := range asked {
		go func() { // joined below
			rtt, err := ask(ctx, host)
			if err != nil {
				host = ""
			}
			answers <- reached{host, rtt}
		}()
	}
	var good []reached
	for range asked {
		if a := <-answers; a.host != "" {
			good = append(good, a)
		}
	}
	slices.SortFunc(good, func(a, b reached) int { return cmp.Or(cmp.Compare(a.rtt, b.rtt), cmp.Compare(a.host, b.host)) })
	out := make([]string, len(good))
	for i := range good {
		out[i] = good[i].host
	}
	return out
}
