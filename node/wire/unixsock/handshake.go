package unixsock

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"

	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/wire/framing"
)

// ID names the handshake on Unix sockets and its version.
const ID protocol.ID = "/cartwheel/local/1"

const (
	nonceSize    = 32
	greetingHead = 1 + 4 + nonceSize + len(Place{})
	maxSignature = 1024

	// MaxPublicKey bounds the public key in a greeting.
	MaxPublicKey = 1024
)

// The roles that signatures name. So neither end can use the signature of the
// other.
const (
	roleDialler  = "dialler"
	roleListener = "listener"
)

var (
	errGreeting  = errors.New("a greeting that cannot be read")
	errElsewhere = errors.New("the peer is on another machine or network")
	errUser      = errors.New("the peer names another user than the kernel does")
	errSignature = errors.New("the peer's signature does not match")

	// ErrStranger says that another peer answered than the one dialled.
	ErrStranger = errors.New("another peer than the one dialled")
)

// Place names this boot of this machine, and its network.
type Place [32]byte

// Identity is what an end proves in its handshakes, and what it expects.
type Identity struct {
	Key    crypto.PrivKey
	Self   peer.ID // the ID of Key
	Place  Place
	Lanes  []protocol.ID // what connections may be for; greetings carry an index of it
	Logger *slog.Logger
}

// Security authenticates both ends of a Unix socket and encrypts nothing. Each
// end signs both greetings, with the lane, fresh nonces, both public keys, both
// machines and networks, and both users. The kernel names the peer's user. So a
// process of another user cannot stand between the ends and forward signatures,
// and a process of the same user could read the key itself.
type Security struct {
	*Identity
	Lane uint8 // of this end's dials
}

// carrier is a connection on a Unix socket.
type carrier interface{ Socket() *Conn }

// greeting is the first message of each end.
type greeting struct {
	lane    uint8
	user    uint32
	nonce   [nonceSize]byte
	place   Place
	key     []byte
	encoded []byte // with its length
}

// ID implements sec.SecureTransport.
func (s Security) ID() protocol.ID { return ID }

// SecureInbound implements sec.SecureTransport.
func (s Security) SecureInbound(ctx context.Context, c net.Conn, _ peer.ID) (sec.SecureConn, error) {
	return s.secure(ctx, c, func(socket *Conn) (*SecureConn, error) {
		theirs, public, err := s.receive(c, socket)
		if err != nil {
			return nil, err
		}
		ours, err := s.greet(theirs.lane)
		if err != nil {
			return nil, err
		}
		signature, err := s.sign(roleListener, theirs, ours)
		if err != nil {
			return nil, err
		}
		if _, err := c.Write(append(ours.encoded, signature...)); err != nil {
			return nil, err
		}
		if err := verify(c, public, roleDialler, theirs, ours); err != nil {
			return nil, err
		}
		return s.conn(c, public, theirs.lane)
	})
}

// SecureOutbound implements sec.SecureTransport.
func (s Security) SecureOutbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	return s.secure(ctx, c, func(socket *Conn) (*SecureConn, error) {
		ours, err := s.greet(s.Lane)
		if err != nil {
			return nil, err
		}
		if _, err := c.Write(ours.encoded); err != nil {
			return nil, err
		}
		theirs, public, err := s.receive(c, socket)
		switch {
		case err != nil:
			return nil, err
		case !id.MatchesPublicKey(public):
			return nil, ErrStranger
		case theirs.lane != s.Lane:
			return nil, errGreeting
		}
		if err := verify(c, public, roleListener, ours, theirs); err != nil {
			return nil, err
		}
		signature, err := s.sign(roleDialler, ours, theirs)
		if err != nil {
			return nil, err
		}
		if _, err := c.Write(signature); err != nil {
			return nil, err
		}
		return s.conn(c, public, s.Lane)
	})
}

// secure runs one end's part until it is done, ctx ends or the time is up.
func (s Security) secure(ctx context.Context, c net.Conn, part func(*Conn) (*SecureConn, error)) (sec.SecureConn, error) {
	on, ok := c.(carrier)
	if !ok || on.Socket() == nil {
		return nil, errors.New("not a Unix socket of this host")
	}
	socket := on.Socket()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // the socket is open: it takes a deadline
	out, err := part(socket)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		s.Logger.Debug("handshake on a socket failed", slog.String("address", socket.address.String()), slog.Any("uid", socket.user), logattr.Err(err))
		return nil, err
	}
	return out, nil
}

func (s Security) greet(lane uint8) (*greeting, error) {
	g := &greeting{lane: lane, user: User(), place: s.Place}
	if _, err := io.ReadFull(rand.Reader, g.nonce[:]); err != nil {
		return nil, err
	}
	var err error
	if g.key, err = crypto.MarshalPublicKey(s.Key.GetPublic()); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(greetingHead+len(g.key)))
	b = append(b, g.lane)
	b = le.AppendUint32(b, g.user)
	b = append(b, g.nonce[:]...)
	b = append(b, g.place[:]...)
	g.encoded = append(b, g.key...)
	return g, nil
}

// receive reads the peer's greeting and checks what needs no signature.
func (s Security) receive(c net.Conn, socket *Conn) (*greeting, crypto.PubKey, error) {
	encoded, err := framing.ReadBlock(c, greetingHead+MaxPublicKey)
	if err != nil {
		return nil, nil, err
	}
	b := encoded[2:]
	if len(b) < greetingHead || int(b[0]) >= len(s.Lanes) {
		return nil, nil, errGreeting
	}
	g := &greeting{lane: b[0], user: binary.LittleEndian.Uint32(b[1:]), key: b[greetingHead:], encoded: encoded}
	copy(g.nonce[:], b[5:])
	copy(g.place[:], b[5+nonceSize:])
	switch {
	case g.place != s.Place:
		return nil, nil, errElsewhere
	case g.user != socket.user:
		return nil, nil, errUser
	}
	public, err := crypto.UnmarshalPublicKey(g.key)
	return g, public, err
}

// signed is what an end signs in its role.
func signed(role string, dialler, listener *greeting) []byte {
	b := append([]byte(ID), 0)
	b = append(append(b, role...), 0)
	return append(append(b, dialler.encoded...), listener.encoded...)
}

// sign returns the signature as it is sent, with its length.
func (s Security) sign(role string, dialler, listener *greeting) ([]byte, error) {
	signature, err := s.Key.Sign(signed(role, dialler, listener))
	return framing.AppendBlock(nil, signature), err
}

// verify reads and checks the peer's signature.
func verify(c net.Conn, public crypto.PubKey, role string, dialler, listener *greeting) error {
	signature, err := framing.ReadBlock(c, maxSignature)
	if err != nil {
		return err
	}
	if ok, err := public.Verify(signed(role, dialler, listener), signature[2:]); err != nil || !ok {
		return errSignature
	}
	return nil
}

func (s Security) conn(c net.Conn, public crypto.PubKey, lane uint8) (*SecureConn, error) {
	return NewSecureConn(c, s.Self, public, s.Lanes[lane])
}

// SecureConn is a connection in plain text whose ends know each other.
type SecureConn struct {
	net.Conn
	self, peer peer.ID
	public     crypto.PubKey
	lane       protocol.ID
}

// NewSecureConn returns a connection between self and the holder of a public key,
// on a lane. The caller has authenticated the peer.
func NewSecureConn(c net.Conn, self peer.ID, public crypto.PubKey, lane protocol.ID) (*SecureConn, error) {
	id, err := peer.IDFromPublicKey(public)
	return &SecureConn{Conn: c, self: self, peer: id, public: public, lane: lane}, err
}

// LocalPeer implements sec.SecureConn, as do the others.
func (c *SecureConn) LocalPeer() peer.ID             { return c.self }
func (c *SecureConn) RemotePeer() peer.ID            { return c.peer }
func (c *SecureConn) RemotePublicKey() crypto.PubKey { return c.public }
func (c *SecureConn) ConnState() network.ConnectionState {
	return network.ConnectionState{StreamMultiplexer: c.lane, Security: ID, Transport: "unix", UsedEarlyMuxerNegotiation: true}
}
