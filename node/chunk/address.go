// Package chunk names, cuts and arranges content: addresses (BLAKE3-256),
// content-defined chunking with the one parameter set of the cluster, and
// manifests, the immutable trees of extents that are the versions of files. It
// is not a store: it reads manifest nodes through a Reader and hands new ones
// back, and never does I/O, looks at a clock or starts a goroutine. Functions
// are pure; a Splitter or a Builder belongs to one goroutine at a time. What is
// stored or sent is described byte by byte in docs/formats/chunk.md and
// docs/formats/manifest.md.
package chunk

import (
	"bytes"
	"encoding/hex"

	"cartwheel.dev/geo-config/fault"
	"github.com/zeebo/blake3"
)

// AddressSize is the length of an address in bytes.
const AddressSize = 32

// Address names a chunk or a manifest node: the BLAKE3-256 of its bytes. The
// zero Address names nothing.
type Address [AddressSize]byte

// Sum returns the address of data.
func Sum(data []byte) Address { return blake3.Sum256(data) }

// SumParts returns the address of the parts joined end to end.
func SumParts(parts ...[]byte) Address {
	if len(parts) == 1 {
		return Sum(parts[0])
	}
	return NewHasher().Sum(parts)
}

// Hasher sums content that lies in several parts, time and again without an
// allocation. It belongs to one goroutine at a time.
type Hasher struct{ state *blake3.Hasher }

// NewHasher returns a Hasher.
func NewHasher() *Hasher { return &Hasher{blake3.New()} }

// Sum returns the address of the parts joined end to end.
func (h *Hasher) Sum(parts [][]byte) Address {
	if len(parts) == 1 {
		return Sum(parts[0])
	}
	h.state.Reset()
	for _, p := range parts {
		_, _ = h.state.Write(p) // a hash never fails
	}
	var a Address
	h.state.Sum(a[:0])
	return a
}

// IsZero reports whether a names nothing.
func (a Address) IsZero() bool { return a == Address{} }

// Compare orders addresses as bytes do.
func (a Address) Compare(b Address) int { return bytes.Compare(a[:], b[:]) }

func (a Address) String() string { return hex.EncodeToString(a[:]) }

// Short is the address's first four bytes in hexadecimal, for people.
func (a Address) Short() string { return hex.EncodeToString(a[:4]) }

// AddressOf takes an address from exactly AddressSize bytes.
func AddressOf(b []byte) (Address, error) {
	const op fault.Op = "chunk.AddressOf"
	if len(b) != AddressSize {
		return Address{}, fault.Errorf(fault.Invalid, op, "", "an address has %d bytes, not %d", AddressSize, len(b))
	}
	return Address(b), nil
}

// ParseAddress reads what String wrote.
func ParseAddress(text string) (Address, error) {
	const op fault.Op = "chunk.ParseAddress"
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != AddressSize {
		return Address{}, fault.Errorf(fault.Invalid, op, text, "an address is %d hexadecimal digits", 2*AddressSize)
	}
	return Address(b), nil
}

// Addresses takes apart addresses that stand end to end, as messages carry them.
func Addresses(b []byte) ([]Address, error) {
	const op fault.Op = "chunk.Addresses"
	if len(b)%AddressSize != 0 {
		return nil, fault.Errorf(fault.Invalid, op, "", "%d bytes are no whole number of addresses", len(b))
	}
	out := make([]Address, len(b)/AddressSize)
	for i := range out {
		out[i] = Address(b[i*AddressSize:])
	}
	return out, nil
}

// AppendAddresses joins addresses end to end.
func AppendAddresses(dst []byte, addresses ...Address) []byte {
	for i := range addresses {
		dst = append(dst, addresses[i][:]...)
	}
	return dst
}

// Verify answers Corrupt where data is not what a names.
func Verify(a Address, data []byte) error {
	const op fault.Op = "chunk.Verify"
	if Sum(data) != a {
		return fault.E(fault.Corrupt, op, a.String(), "the content does not have this address")
	}
	return nil
}
