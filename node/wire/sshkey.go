package wire

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/crypto/ssh"

	"cartwheel.dev/geo-config/fault"
)

// sshHeader begins a private key as OpenSSH writes it.
const sshHeader = "-----BEGIN OPENSSH PRIVATE KEY-----"

func isSSHKey(encoded []byte) bool { return bytes.HasPrefix(encoded, []byte(sshHeader)) }

// parseSSHKey reads a private key of OpenSSH. Errors: NotSupported
// where it has a passphrase or is of another kind than Ed25519, Corrupt.
func parseSSHKey(encoded []byte) (Key, error) {
	const op fault.Op = "wire.parseSSHKey"
	raw, err := ssh.ParseRawPrivateKey(encoded)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		return Key{}, fault.E(fault.NotSupported, op, "", "the key has a passphrase, for which nobody can be asked while a mount starts: use a key without one, as \"cartwheel key FILE\" makes it")
	}
	if err != nil {
		return Key{}, &fault.Error{Kind: fault.Corrupt, Op: op, Public: "not a private key of OpenSSH", Cause: err}
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return Key{}, fault.E(fault.NotSupported, op, "", "the key is of another kind than ed25519: make one with \"ssh-keygen -t ed25519\" or \"cartwheel key FILE\"")
	}
	private, err := crypto.UnmarshalEd25519PrivateKey(*key)
	if err != nil {
		return Key{}, &fault.Error{Kind: fault.Corrupt, Op: op, Public: "not an Ed25519 key", Cause: err}
	}
	return newKey(op, private)
}

// UserKeyID returns the identity of a user's key as people give it: that identity
// itself, or the line of a public key of OpenSSH (ssh-ed25519 AAAA... comment).
// Errors: Usage, with the remedy.
func UserKeyID(text string) (string, error) {
	const op fault.Op = "wire.UserKeyID"
	text = strings.TrimSpace(text)
	if !strings.ContainsAny(text, " \t") {
		if _, err := peer.Decode(text); err != nil {
			return "", fault.E(fault.Usage, op, "key", "is no identity as \"cartwheel key FILE\" prints it, and no line of an OpenSSH public key")
		}
		return text, nil
	}
	public, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return "", fault.E(fault.Usage, op, "key", "is not one line of an OpenSSH public key, as a file that ends in .pub has it")
	}
	wrapped, ok := public.(ssh.CryptoPublicKey)
	if !ok { // a certificate
		return "", fault.Errorf(fault.Usage, op, "key", "is a %s: give the ssh-ed25519 key itself", public.Type())
	}
	key, ok := wrapped.CryptoPublicKey().(ed25519.PublicKey)
	if !ok || public.Type() != ssh.KeyAlgoED25519 { // one on a security key signs nothing else
		return "", fault.Errorf(fault.Usage, op, "key", "is of kind %s, and only ssh-ed25519 serves: make one with \"ssh-keygen -t ed25519\"", public.Type())
	}
	converted, err := crypto.UnmarshalEd25519PublicKey(key)
	if err != nil {
		return "", fault.Wrap(fault.Usage, op, "key", err)
	}
	id, err := peer.IDFromPublicKey(converted)
	return id.String(), fault.Wrap(fault.Usage, op, "key", err)
}
