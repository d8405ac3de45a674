package wire

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"

	"cartwheel.dev/node/wire/framing"
)

// localID names the handshake on Unix sockets and its version.
const localID protocol.ID = "/cartwheel/local/1"

const (
	nonceSize    = 32
	placeSize    = 32
	greetingHead = 1 + 4 + nonceSize + placeSize
	maxPublicKey = 1024
	maxSignature = 1024
)

// The roles that signatures name, so that none serves the other end.
const (
	roleDialler  = "dialler"
	roleListener = "listener"
)

var (
	errGreeting  = errors.New("a greeting that cannot be read")
	errElsewhere = errors.New("the peer is on another machine or network")
	errUser      = errors.New("the peer names another user than the kernel does")
	errSignature = errors.New("the peer's signature does not match")
	errStranger  = errors.New("another peer than the one dialled")
)

// localSecurity authenticates both ends of a Unix socket and encrypts nothing.
// Each end signs both greetings: the lane, fresh nonces, both public keys,
// its machine and network, and its user. The kernel names the peer's user, so
// a process of another user cannot stand between the ends and pass signatures
// on; one of the same user could read the key itself.
type localSecurity struct {
	host *Host
	lane lane // when dialling
}

// greeting is the first message of each end.
type greeting struct {
	lane    lane
	user    uint32
	nonce   [nonceSize]byte
	place   [placeSize]byte
	key     []byte
	encoded []byte // with its length
}

// ID implements sec.SecureTransport.
func (s localSecurity) ID() protocol.ID { return localID }

// SecureInbound implements sec.SecureTransport.
func (s localSecurity) SecureInbound(ctx context.Context, c net.Conn, _ peer.ID) (sec.SecureConn, error) {
	return s.secure(ctx, c, func(socket *localSocket) (*localConn, error) {
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
func (s localSecurity) SecureOutbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	return s.secure(ctx, c, func(socket *localSocket) (*localConn, error) {
		ours, err := s.greet(s.lane)
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
			return nil, errStranger
		case theirs.lane != s.lane:
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
		return s.conn(c, public, s.lane)
	})
}

// secure runs one end's part until it is done, ctx ends or the time is over.
func (s localSecurity) secure(ctx context.Context, c net.Conn, part func(*localSocket) (*localConn, error)) (sec.SecureConn, error) {
	r, ok := c.(*raw)
	if !ok || r.local == nil {
		return nil, errors.New("not a Unix socket of this host")
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // the socket is open: it takes a deadline
	out, err := part(r.local)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		s.host.options.Logger.Debug("handshake on a socket failed", "address", r.local.address.String(), "uid", r.local.user, "error", err)
		return nil, err
	}
	return out, nil
}

func (s localSecurity) greet(l lane) (*greeting, error) {
	g := &greeting{lane: l, user: localUser(), place: s.host.place}
	if _, err := io.ReadFull(rand.Reader, g.nonce[:]); err != nil {
		return nil, err
	}
	g.key = s.host.options.Key.Public()
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(greetingHead+len(g.key)))
	b = append(b, byte(g.lane))
	b = le.AppendUint32(b, g.user)
	b = append(b, g.nonce[:]...)
	b = append(b, g.place[:]...)
	g.encoded = append(b, g.key...)
	return g, nil
}

// receive reads the peer's greeting and checks what needs no signature.
func (s localSecurity) receive(c net.Conn, socket *localSocket) (*greeting, crypto.PubKey, error) {
	encoded, err := framing.ReadBlock(c, greetingHead+maxPublicKey)
	if err != nil {
		return nil, nil, err
	}
	b := encoded[2:]
	if len(b) < greetingHead || lane(b[0]) > laneSplice {
		return nil, nil, errGreeting
	}
	g := &greeting{lane: lane(b[0]), user: binary.LittleEndian.Uint32(b[1:]), key: b[greetingHead:], encoded: encoded}
	copy(g.nonce[:], b[5:])
	copy(g.place[:], b[5+nonceSize:])
	switch {
	case g.place != s.host.place:
		return nil, nil, errElsewhere
	case g.user != socket.user:
		return nil, nil, errUser
	}
	public, err := crypto.UnmarshalPublicKey(g.key)
	return g, public, err
}

// signed is what an end signs in its role.
func signed(role string, dialler, listener *greeting) []byte {
	b := append([]byte(localID), 0)
	b = append(append(b, role...), 0)
	return append(append(b, dialler.encoded...), listener.encoded...)
}

// sign returns the signature as it is sent, with its length.
func (s localSecurity) sign(role string, dialler, listener *greeting) ([]byte, error) {
	signature, err := s.host.options.Key.Sign(signed(role, dialler, listener))
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(signature))), signature...), err
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

func (s localSecurity) conn(c net.Conn, public crypto.PubKey, l lane) (*localConn, error) {
	id, err := peer.IDFromPublicKey(public)
	return &localConn{Conn: c, self: s.host.options.Key.id, peer: id, public: public, lane: l}, err
}

// localConn is an authenticated Unix socket.
type localConn struct {
	net.Conn
	self, peer peer.ID
	public     crypto.PubKey
	lane       lane
}

// LocalPeer implements sec.SecureConn, as do the others.
func (c *localConn) LocalPeer() peer.ID             { return c.self }
func (c *localConn) RemotePeer() peer.ID            { return c.peer }
func (c *localConn) RemotePublicKey() crypto.PubKey { return c.public }
func (c *localConn) ConnState() network.ConnectionState {
	return network.ConnectionState{StreamMultiplexer: protocols[c.lane], Security: localID, Transport: "unix", UsedEarlyMuxerNegotiation: true}
}
