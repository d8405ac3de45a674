package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/framing"
)

const op fault.Op = "relay.Serve"

// maxText bounds the request and the answer that begin a relayed connection.
const maxText = 4096

// bufferSize is the most that one read takes.
const bufferSize = 64 << 10

// Host is what a Server needs of its host. Its methods are called from many
// goroutines, and only Dial may block.
type Host interface {
	// Dial opens a TCP connection to a peer, with nothing on it yet.
	Dial(ctx context.Context, peer string) (net.Conn, error)
	// Allow says why a peer may not reach another one through this host; nil: it may.
	Allow(from, to string) error
	// Drops reports whether a fault filter drops the bytes to a peer.
	Drops(peer string) bool
}

// Config is what a Server needs. All fields must be set.
type Config struct {
	Limits  Limits
	Dial    time.Duration // how long the request and the dial may take, each
	Silence time.Duration // how long an end may be silent, or take nothing
	Buffers *framing.Buffers
	Logger  *slog.Logger
}

// Server relays connections for other hosts.
type Server struct {
	host   Host
	config Config
	usage  *usage
	began  time.Time // zero of the clock of paces
}

// NewServer returns a Server.
func NewServer(host Host, config Config) *Server {
	return &Server{host: host, config: config, usage: newUsage(config.Limits), began: time.Now()}
}

// Open returns how many connections the server relays now.
func (s *Server) Open() int {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	return s.usage.open
}

// Serve takes a connection of the peer from, on which that peer asks for another
// one. It dials the other peer and forwards bytes until one end closes or ctx
// ends. The bytes are encrypted between the two peers, which authenticate each
// other. Serve closes near.
func (s *Server) Serve(ctx context.Context, from string, near net.Conn) {
	defer near.Close()
	to, far, err := s.open(ctx, from, near)
	if err == nil {
		defer s.usage.release(from)
		defer far.Close()
	}
	if answerErr := answer(near, err); err != nil || answerErr != nil {
		s.config.Logger.Debug("a relayed connection was not made", logattr.Peer(from), slog.String("to", to), logattr.Err(errors.Join(err, answerErr)))
		return
	}
	s.config.Logger.Info("passing bytes on between peers that do not reach each other", logattr.Peer(from), slog.String("to", to))
	stop := context.AfterFunc(ctx, func() { _ = near.Close(); far.Close() }) // both copies end with either
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.forward(ctx, far, near, to)
		far.Close()
		_ = near.Close() // the other copy must not wait for it
	}()
	s.forward(ctx, near, far, from)
	far.Close()
	_ = near.Close()
	<-done
}

// open reads the request and dials. Without an error the connection counts.
func (s *Server) open(ctx context.Context, from string, near net.Conn) (to string, far net.Conn, err error) {
	if err = near.SetDeadline(time.Now().Add(s.config.Dial)); err != nil {
		return "", nil, err
	}
	block, err := framing.ReadBlock(near, maxText)
	if err != nil {
		return "", nil, err
	}
	to = string(block[2:])
	if err = s.host.Allow(from, to); err != nil {
		return to, nil, err
	}
	if err = s.usage.acquire(from, time.Now()); err != nil {
		return to, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Dial)
	defer cancel()
	if far, err = s.host.Dial(ctx, to); err != nil {
		s.usage.release(from)
		return to, nil, fault.Wrap(fault.Unreachable, op, to, err)
	}
	return to, far, nil
}

func answer(near net.Conn, failed error) error {
	var text []byte
	if failed != nil {
		text = framing.AppendFault(nil, failed)
	}
	if err := near.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := near.Write(framing.AppendBlock(nil, text[:min(len(text), maxText)]))
	return err
}

// forward copies from one end to the other until either fails, is silent for
// twice as long as the ends themselves accept, or a filter cuts it.
func (s *Server) forward(ctx context.Context, to, from net.Conn, peer string) {
	buffer := s.config.Buffers.Get(bufferSize)
	defer buffer.Release()
	var p pace
	for {
		if from.SetReadDeadline(time.Now().Add(2*s.config.Silence)) != nil {
			return
		}
		n, err := from.Read(buffer.Bytes())
		if n > 0 {
			if s.host.Drops(peer) || to.SetWriteDeadline(time.Now().Add(2*s.config.Silence)) != nil {
				return
			}
			if _, err := to.Write(buffer.Bytes()[:n]); err != nil || !sleep(ctx, p.take(time.Since(s.began), n, s.usage.share())) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// sleep waits; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ask asks the relay at the other end of c for a peer and waits for the answer.
// It returns io.EOF if the relay hung up.
func Ask(c net.Conn, peer string, limit time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := c.Write(framing.AppendBlock(nil, []byte(peer))); err != nil {
		return err
	}
	block, err := framing.ReadBlock(c, maxText)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return err
	case len(block) > 2:
		return framing.ParseFault(block[2:], peer)
	}
	return c.SetDeadline(time.Time{})
}
