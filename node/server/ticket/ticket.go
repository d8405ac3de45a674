// Package ticket seals what a node found out about a user, so that any node of
// the cluster can rely on it later: that the user's lookups led to an object,
// that the user may read one version of a file, that the user has the bytes of
// a chunk, or that a client made an object for a directory. A ticket holds no
// names: the request that shows one names what it is for, and a ticket that was
// sealed for anything else does not open. The package decides nothing about
// permissions. A Sealer is safe for concurrent use.
package ticket

import (
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/blake3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// Life is how long a ticket opens after it was sealed. Who lost one is asked
// for a path to the object again.
const Life = time.Hour

// MadeLife is Life of a Made ticket: longer than a client goes on with one
// operation. An active remembers the objects that it named for longer, so a
// ticket names an object once.
const MadeLife = 10 * time.Minute

// Holder is the user a ticket is for. A user whose uid changes loses its
// tickets.
type Holder struct {
	User ids.User
	UID  uint32
}

// kind says what a ticket claims. The numbers are on the wire: never renumber.
type kind byte

const (
	reached  kind = 1
	readable kind = 2
	owned    kind = 3
	made     kind = 4
)

// Form of a ticket: kind, when it ends (seconds since 1970, 32 bits big-endian),
// what the holder may do (8 bits) with which group (32 bits big-endian), MAC.
const (
	macSize = 16
	head    = 1 + 4 + 1 + 4
	// Size is the length of every ticket.
	Size = head + macSize
)

// claim is what is sealed. What a kind does not use is zero.
type claim struct {
	kind   kind
	end    uint32
	rights Rights
	gid    uint32
	object ids.Object
	other  uint64 // the directory of a made object
	client uint64
	mode   uint32
	chunk  chunk.Address
	holder Holder
}

// Rights are what a Reached ticket says beside that the object was reached.
type Rights byte

// The rights.
const (
	// MayAdd: the user may make names in the directory.
	MayAdd Rights = 1 << 0
	// Inherits: what is made in the directory gets its group.
	Inherits Rights = 1 << 1
	// Past: the object was reached in the tree of an earlier time. That opens it in
	// such trees alone: the directories above it may be closed by now.
	Past Rights = 1 << 2
)

// Sealer seals and opens tickets with the cluster's secret.
type Sealer struct {
	// Secret returns the cluster's secret; nil or empty: there is none yet, and
	// then no ticket is sealed and none opens.
	Secret func() string
	// Wall is the clock that ends tickets.
	Wall func() time.Time

	current atomic.Pointer[keyed]
}

// keyed is the state for one secret.
type keyed struct {
	secret  string
	hashers sync.Pool // *blake3.Hasher
}

// NewSecret encodes 32 random bytes as a cluster's secret.
func NewSecret(random [32]byte) string { return hex.EncodeToString(random[:]) }

func (s *Sealer) keyed() *keyed {
	secret := s.Secret()
	if k := s.current.Load(); k != nil && k.secret == secret {
		return k
	}
	key, err := hex.DecodeString(secret)
	if err != nil || len(key) != 32 {
		return nil
	}
	k := &keyed{secret: secret}
	k.hashers.New = func() any {
		h, err := blake3.NewKeyed(key)
		if err != nil {
			return nil // not reached: the key has 32 bytes
		}
		return h
	}
	s.current.Store(k)
	return k
}

// mac computes a claim's MAC.
func (k *keyed) mac(c *claim) (out [macSize]byte) {
	var b [128]byte
	m := append(b[:0], "cartwheel ticket 1\n"...)
	m = append(m, byte(c.kind))
	m = binary.BigEndian.AppendUint32(m, c.end)
	m = append(m, byte(c.rights))
	m = binary.BigEndian.AppendUint32(m, c.gid)
	m = binary.BigEndian.AppendUint64(m, uint64(c.object))
	m = binary.BigEndian.AppendUint64(m, c.other)
	m = binary.BigEndian.AppendUint64(m, c.client)
	m = binary.BigEndian.AppendUint32(m, c.mode)
	m = append(m, c.chunk[:]...)
	m = binary.BigEndian.AppendUint32(m, c.holder.UID)
	h := k.hashers.Get().(*blake3.Hasher)
	h.Reset()
	_, _ = h.Write(m) // never fails
	_, _ = h.WriteString(string(c.holder.User))
	var sum [32]byte
	copy(out[:], h.Sum(sum[:0]))
	k.hashers.Put(h)
	return out
}

// seal returns the ticket of a claim that ends after life, or nil.
func (s *Sealer) seal(c claim, from time.Time, life time.Duration) []byte {
	k := s.keyed()
	if k == nil {
		return nil
	}
	c.end = uint32(from.Add(life).Unix())
	t := append(make([]byte, 0, Size), byte(c.kind))
	t = binary.BigEndian.AppendUint32(t, c.end)
	t = append(t, byte(c.rights))
	t = binary.BigEndian.AppendUint32(t, c.gid)
	mac := k.mac(&c)
	return append(t, mac[:]...)
}

// open checks a ticket for a claim, and fills in what the ticket says itself.
func (s *Sealer) open(t []byte, c *claim) bool {
	if len(t) != Size || t[0] != byte(c.kind) {
		return false
	}
	c.end, c.rights, c.gid = binary.BigEndian.Uint32(t[1:]), Rights(t[5]), binary.BigEndian.Uint32(t[6:])
	k := s.keyed()
	if k == nil || int64(c.end) <= s.Wall().Unix() {
		return false
	}
	mac := k.mac(c)
	return subtle.ConstantTimeCompare(t[head:], mac[:]) == 1
}

// Reached seals that a user's lookups led to an object, with what the user may
// do there and the group that what is made there gets.
func (s *Sealer) Reached(h Holder, o ids.Object, rights Rights, gid uint32) []byte {
	return s.seal(claim{kind: reached, holder: h, object: o, rights: rights, gid: gid}, s.Wall(), Life)
}

// OpenReached reports whether a ticket says that the user reached the object.
func (s *Sealer) OpenReached(t []byte, h Holder, o ids.Object) (rights Rights, gid uint32, ok bool) {
	c := claim{kind: reached, holder: h, object: o}
	ok = s.open(t, &c)
	return c.rights, c.gid, ok
}

// Readable seals that a user may read the version of a file that a manifest's
// root stands for.
func (s *Sealer) Readable(h Holder, o ids.Object, root chunk.Address) []byte {
	return s.seal(claim{kind: readable, holder: h, object: o, chunk: root}, s.Wall(), Life)
}

// OpenReadable reports whether a ticket says that the user may read a version.
func (s *Sealer) OpenReadable(t []byte, h Holder, o ids.Object, root chunk.Address) bool {
	return s.open(t, &claim{kind: readable, holder: h, object: o, chunk: root})
}

// Owned seals that a user had the bytes of a chunk.
func (s *Sealer) Owned(h Holder, a chunk.Address) []byte {
	return s.seal(claim{kind: owned, holder: h, chunk: a}, s.Wall(), Life)
}

// OpenOwned reports whether a ticket says that the user had the chunk's bytes.
func (s *Sealer) OpenOwned(t []byte, h Holder, a chunk.Address) bool {
	return s.open(t, &claim{kind: owned, holder: h, chunk: a})
}

// Made is an object without a name that a client made for a directory.
type Made struct {
	Client uint64
	Object ids.Object
	Dir    ids.Object
	Mode   uint32 // type bits
}

func (m *Made) claim() claim {
	return claim{kind: made, client: m.Client, object: m.Object, other: uint64(m.Dir), mode: m.Mode}
}

// SealMade seals that a client made an object at a time.
func (s *Sealer) SealMade(m Made, at time.Time) []byte { return s.seal(m.claim(), at, MadeLife) }

// OpenMade answers Permission unless the ticket is of this object, directory,
// type and client.
func (s *Sealer) OpenMade(t []byte, m Made) error {
	c := m.claim()
	if !s.open(t, &c) {
		return fault.E(fault.Permission, "ticket.OpenMade", m.Object.String(), "only the client that made an object for the directory may name it there")
	}
	return nil
}
