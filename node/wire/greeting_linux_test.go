package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
)

// readFrom is a connection that bytes come from.
type readFrom struct {
	net.Conn
	*bytes.Reader
}

func (r readFrom) Read(b []byte) (int, error) { return r.Reader.Read(b) }

// FuzzGreeting feeds bytes to what reads the first message on a Unix socket and
// the signature behind it: nobody gets through without signing, and what is read
// is bounded.
func FuzzGreeting(f *testing.F) {
	h := &Host{}
	key, err := NewKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	h.options.Key, h.place = key, [placeSize]byte{1, 2, 3}
	own, err := localSecurity{h, direct(Operation)}.greet(direct(Operation))
	if err != nil {
		f.Fatal(err)
	}
	signature := make([]byte, 64)
	f.Add([]byte{})
	f.Add(own.encoded)
	f.Add(own.encoded[:40])
	f.Add(append(append(bytes.Clone(own.encoded), 64, 0), signature...))
	f.Add(binary.LittleEndian.AppendUint16(nil, 0xffff))
	f.Fuzz(func(t *testing.T, data []byte) {
		from := readFrom{Reader: bytes.NewReader(data)}
		theirs, public, err := localSecurity{h, direct(Operation)}.receive(from, &localSocket{user: localUser()})
		if err == nil {
			err = verify(from, public, roleDialler, theirs, own)
		}
		if err == nil {
			t.Error("nothing was signed, and the peer got through")
		}
		if read := len(data) - from.Len(); read > greetingHead+maxPublicKey+maxSignature+4 {
			t.Errorf("%d bytes were read", read)
		}
	})
}
