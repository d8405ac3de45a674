package people

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// tokenBytes is how many random bytes a token has: 256 bits.
const tokenBytes = 32

// maxTokenBytes bounds a token that somebody shows.
const maxTokenBytes = 256

// newToken makes a token that names an account, so that one question finds the
// record of the token and the account's.
func (s *Service) newToken(name string) (string, error) {
	var b [tokenBytes]byte
	if _, err := io.ReadFull(s.o.Rand, b[:]); err != nil {
		return "", fault.Wrap(fault.IO, "people.newToken", "", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]) + "." + name, nil
}

// splitToken returns the account that a token names, and the name of its record.
func splitToken(token string) (name, id string, ok bool) {
	if len(token) > maxTokenBytes {
		return "", "", false
	}
	_, name, ok = strings.Cut(token, ".")
	sum := sha256.Sum256([]byte(token))
	return name, hex.EncodeToString(sum[:]), ok && isName(name)
}

// LinkURL is the address that signs in by a link's token. The token stands behind
// the #, which browsers send to no server, so it gets into no log.
func LinkURL(console, token string) string {
	return strings.TrimSuffix(console, "/") + "/sign-in#link=" + token
}

// CSRF returns what a page has to send in a header with each change that it makes
// in a session. A page of another origin cannot know it, since it follows from
// the session's token.
func CSRF(token string) string {
	sum := sha256.Sum256([]byte("cartwheel csrf\x00" + token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
