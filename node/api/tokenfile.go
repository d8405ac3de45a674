package api

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// LocalName is the account of whoever can read a node's token file.
const LocalName = "local"

// TokenFile is an Authenticator for programs on the node's own machine: whoever can
// read the file is the administrator "local". A request shows what is in it as
// Authorization: Bearer TOKEN. It does not change after OpenTokenFile and is safe
// for concurrent use.
type TokenFile struct{ sum [sha256.Size]byte }

// OpenTokenFile reads the file, or makes it with a new token, for the node's user
// alone. It refuses one that others may read: they would be administrators.
func OpenTokenFile(path string) (*TokenFile, error) {
	const op fault.Op = "api.OpenTokenFile"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return makeTokenFile(path)
	case err != nil:
		return nil, fault.FromOS(op, path, err)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fault.Errorf(fault.Permission, op, path, "may be read by others (mode %o): remove it, and the next start makes another one", info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	token := bytes.TrimSpace(data)
	if len(token) < 32 {
		return nil, fault.E(fault.Corrupt, op, path, "holds no token: remove it, and the next start makes another one")
	}
	return &TokenFile{sha256.Sum256(token)}, nil
}

func makeTokenFile(path string) (*TokenFile, error) {
	const op fault.Op = "api.makeTokenFile"
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	token := hex.EncodeToString(raw[:])
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // half a token is none
		return nil, fault.FromOS(op, path, err)
	}
	return &TokenFile{sha256.Sum256([]byte(token))}, nil
}

// Authenticate implements Authenticator.
func (t *TokenFile) Authenticate(r *http.Request) (Principal, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], t.sum[:]) != 1 {
		return Principal{}, fault.E(fault.Unauthorized, "api.Authenticate", "", "the request shows no valid account")
	}
	return Principal{Name: LocalName, Role: Administrator}, nil
}
