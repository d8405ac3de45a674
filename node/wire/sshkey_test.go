package wire

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"cartwheel.dev/geo-config/fault"
)

// sshPair makes a key's two files as ssh-keygen does; passphrase "": none.
func sshPair(t *testing.T, key crypto.Signer, passphrase string) (private, public []byte) {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "ann@desk")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "ann@desk", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	half, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(half)), "\n") + " ann@desk\n"
	return pem.EncodeToMemory(block), []byte(line)
}

func ed25519Key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestLoadKey_ReadsAKeyOfOpenSSH(t *testing.T) {
	private, public := sshPair(t, ed25519Key(t), "")
	file := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(file, private, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := LoadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := UserKeyID(string(public)); err != nil || id != key.KeyID() {
		t.Errorf("the public half is %q, %v; the private one is %q", id, err, key.KeyID())
	}
	if id, err := UserKeyID(key.KeyID() + "\n"); err != nil || id != key.KeyID() {
		t.Errorf("its identity is taken as %q, %v, want %q", id, err, key.KeyID())
	}
	signature, err := key.Sign([]byte("text"))
	if err != nil || Verify(key.Public(), []byte("text"), signature) != nil {
		t.Errorf("what it signed does not verify: %v", err)
	}
}

func TestSSHKey_RefusesWhatCannotServe(t *testing.T) {
	locked, _ := sshPair(t, ed25519Key(t), "secret")
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, public := sshPair(t, other, "")
	_, good := sshPair(t, ed25519Key(t), "")
	whole, _ := sshPair(t, ed25519Key(t), "")
	for name, c := range map[string]struct {
		encoded []byte
		kind    fault.Kind
		says    string
	}{
		"with a passphrase": {locked, fault.NotSupported, "passphrase"},
		"of another kind":   {private, fault.NotSupported, "ed25519"},
		"cut off":           {whole[:len(whole)/2], fault.Corrupt, "OpenSSH"},
	} {
		if _, err := ParseKey(c.encoded); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a private key %s: got %v, want %v that says %q", name, err, c.kind, c.says)
		}
	}
	for name, c := range map[string]struct{ text, says string }{
		"of another kind": {string(public), "ssh-keygen -t ed25519"},
		"with options":    {`command="ls" ` + string(good), "one line"},
		"of two lines":    {string(good) + string(good), "one line"},
		"cut off":         {string(good[:40]) + " ann", "one line"},
		"no key":          {"hello", "cartwheel key"},
		"empty":           {"", "cartwheel key"},
	} {
		if _, err := UserKeyID(c.text); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a public key %s: got %v, want Usage that says %q", name, err, c.says)
		}
	}
}
