package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"

	"cartwheel.dev/node/wire/unixsock"
)

// simulatedID names the greeting on a simulated network.
const simulatedID protocol.ID = "/cartwheel/simulated/1"

// simulatedSecurity names each end to the other, and proves nothing.
type simulatedSecurity struct {
	key  Key
	lane lane // when dialling
}

// ID implements sec.SecureTransport.
func (s simulatedSecurity) ID() protocol.ID { return simulatedID }

// SecureInbound implements sec.SecureTransport.
func (s simulatedSecurity) SecureInbound(ctx context.Context, c net.Conn, _ peer.ID) (sec.SecureConn, error) {
	return s.greet(ctx, c, func() (lane, []byte, error) {
		on, key, err := readSimulated(c)
		if err == nil {
			err = s.write(c, on)
		}
		return on, key, err
	})
}

// SecureOutbound implements sec.SecureTransport.
func (s simulatedSecurity) SecureOutbound(ctx context.Context, c net.Conn, id peer.ID) (sec.SecureConn, error) {
	out, err := s.greet(ctx, c, func() (lane, []byte, error) {
		if err := s.write(c, s.lane); err != nil {
			return 0, nil, err
		}
		return readSimulated(c)
	})
	if err == nil && out.RemotePeer() != id {
		return nil, unixsock.ErrStranger
	}
	return out, err
}

// greet runs one end's part until it is done or ctx ends.
func (s simulatedSecurity) greet(ctx context.Context, c net.Conn, part func() (lane, []byte, error)) (sec.SecureConn, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // the connection is open: it takes a deadline
	on, key, err := part()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	public, err := crypto.UnmarshalPublicKey(key)
	if err != nil {
		return nil, err
	}
	return unixsock.NewSecureConn(c, s.key.id, public, protocols[on])
}

func (s simulatedSecurity) write(c net.Conn, on lane) error {
	key := s.key.Public()
	b := append(binary.LittleEndian.AppendUint16([]byte{byte(on)}, uint16(len(key))), key...)
	_, err := c.Write(b)
	return err
}

func readSimulated(c net.Conn) (lane, []byte, error) {
	var head [3]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint16(head[1:]))
	if lane(head[0]) >= lanes || n > unixsock.MaxPublicKey {
		return 0, nil, errors.New("a greeting that cannot be read")
	}
	key := make([]byte, n)
	_, err := io.ReadFull(c, key)
	return lane(head[0]), key, err
}
