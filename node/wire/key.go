package wire

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"cartwheel.dev/geo-config/fault"
)

// Key is a private Ed25519 key: the identity of a node, a client or a user.
type Key struct {
	private crypto.PrivKey
	id      peer.ID
}

// NewKey makes a key from random, or from the system's source if that is nil.
func NewKey(random io.Reader) (Key, error) {
	if random == nil {
		random = rand.Reader
	}
	private, _, err := crypto.GenerateEd25519Key(random)
	if err != nil {
		return Key{}, fault.Wrap(fault.IO, "wire.NewKey", "", err)
	}
	return newKey("wire.NewKey", private)
}

func newKey(op fault.Op, private crypto.PrivKey) (Key, error) {
	id, err := peer.IDFromPrivateKey(private)
	if err != nil {
		return Key{}, fault.Wrap(fault.Invalid, op, "", err)
	}
	return Key{private: private, id: id}, nil
}

// ParseKey reads what Marshal wrote, or an Ed25519 key as OpenSSH writes it.
func ParseKey(encoded []byte) (Key, error) {
	if isSSHKey(encoded) {
		return parseSSHKey(encoded)
	}
	private, err := crypto.UnmarshalPrivateKey(encoded)
	if err != nil {
		return Key{}, &fault.Error{Kind: fault.Corrupt, Op: "wire.ParseKey", Public: "not a private key", Cause: err}
	}
	return newKey("wire.ParseKey", private)
}

// Marshal returns the key in libp2p's encoding. It is a secret.
func (k Key) Marshal() ([]byte, error) {
	encoded, err := crypto.MarshalPrivateKey(k.private)
	return encoded, fault.Wrap(fault.Invalid, "wire.Key.Marshal", "", err)
}

// LoadKey reads the key in a file that only its owner may read. NotFound: there
// is none. Permission: others may read it, or it is another user's.
func LoadKey(path string) (Key, error) {
	const op fault.Op = "wire.LoadKey"
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, fault.E(fault.NotFound, op, path, "there is no such key file: check the path, or make one with `cartwheel key`")
	}
	if err != nil {
		return Key{}, fault.FromOS(op, path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, fault.FromOS(op, path, err)
	}
	if wrong := exposed(info); wrong != "" {
		return Key{}, fault.E(fault.Permission, op, path, wrong)
	}
	encoded, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return Key{}, fault.FromOS(op, path, err)
	}
	k, err := ParseKey(encoded)
	return k, fault.Wrap(fault.Corrupt, op, path, err)
}

// maxKeyFile is more than any key takes.
const maxKeyFile = 4 << 10

// MakeKey reads the key in a file, which it makes, readable only by its owner,
// if there is none.
func MakeKey(path string) (Key, error) {
	const op fault.Op = "wire.MakeKey"
	k, err := LoadKey(path)
	if !fault.Is(err, fault.NotFound) {
		return k, err
	}
	if k, err = NewKey(nil); err != nil {
		return Key{}, fault.Wrap(fault.IO, op, path, err)
	}
	return k, fault.Wrap(fault.IO, op, path, saveKey(path, k))
}

func saveKey(path string, k Key) error {
	encoded, err := k.Marshal()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(encoded); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// KeyID returns the peer ID in text form: a geoconfig.NodeID for a node.
func (k Key) KeyID() string { return k.id.String() }

// Public returns the public half in libp2p's encoding.
func (k Key) Public() []byte {
	encoded, err := crypto.MarshalPublicKey(k.private.GetPublic())
	if err != nil {
		return nil // an Ed25519 key always encodes
	}
	return encoded
}

// Sign signs data.
func (k Key) Sign(data []byte) ([]byte, error) {
	signature, err := k.private.Sign(data)
	return signature, fault.Wrap(fault.Invalid, "wire.Key.Sign", "", err)
}

// Verify checks a signature by the holder of a public key as Public encodes it.
func Verify(public, data, signature []byte) error {
	const op fault.Op = "wire.Verify"
	key, err := crypto.UnmarshalPublicKey(public)
	if err != nil {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Public: "not a public key", Cause: err}
	}
	return verify(op, key, data, signature)
}

// VerifyID checks a signature by the holder of the key that KeyID names.
func VerifyID(id string, data, signature []byte) error {
	const op fault.Op = "wire.VerifyID"
	named, err := peer.Decode(id)
	if err != nil {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Public: "not a peer ID", Cause: err}
	}
	key, err := named.ExtractPublicKey()
	if err != nil {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Public: "the peer ID holds no key", Cause: err}
	}
	return verify(op, key, data, signature)
}

func verify(op fault.Op, key crypto.PubKey, data, signature []byte) error {
	if ok, err := key.Verify(data, signature); err != nil || !ok {
		return &fault.Error{Kind: fault.Unauthorized, Op: op, Public: "the signature does not match", Cause: err}
	}
	return nil
}

// PublicID returns the peer ID that a public key as Public encodes it has.
func PublicID(public []byte) (string, error) {
	key, err := crypto.UnmarshalPublicKey(public)
	if err != nil {
		return "", &fault.Error{Kind: fault.Invalid, Op: "wire.PublicID", Public: "not a public key", Cause: err}
	}
	id, err := peer.IDFromPublicKey(key)
	return id.String(), fault.Wrap(fault.Invalid, "wire.PublicID", "", err)
}
