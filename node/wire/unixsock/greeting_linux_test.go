package unixsock

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

// FuzzGreeting feeds bytes to the reader of a greeting and the signature behind
// it. No peer gets through without signing, and little is read.
func FuzzGreeting(f *testing.F) {
	security := newSecurity(f, 0)
	own, err := security.greet(1)
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
		theirs, public, err := security.receive(from, &Conn{user: User()})
		if err == nil {
			err = verify(from, public, roleDialler, theirs, own)
		}
		if err == nil {
			t.Error("nothing was signed, and the peer got through")
		}
		if read := len(data) - from.Len(); read > greetingHead+MaxPublicKey+maxSignature+4 {
			t.Errorf("%d bytes were read", read)
		}
	})
}
