// Package join brings a machine into a cluster with a token: one line of text
// that an administrator makes for a site, that expires, and that adds one node
// once. The token has a private key. The configuration's users have a row for
// it, which says what the key may do, and which goes when the node is added. It
// keeps nothing; its functions may be called from anywhere.
package join

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/wire"
)

// Token is what a machine needs to join. Whoever has it may join.
type Token struct {
	// GeoConfig are the geo-config server's addresses, ending in /p2p/ID.
	GeoConfig []string    `json:"geo_config"`
	Cluster   ids.Cluster `json:"cluster"`
	Site      ids.Site    `json:"site"`
	// Name and Revision are those of the token's row.
	Name     ids.User     `json:"name"`
	Revision ids.Revision `json:"revision"`
	// ExpiresNS is until when, in nanoseconds since 1970, by geo-config's clock.
	ExpiresNS int64 `json:"expires_ns"`
	// Secret is the private key's encoding.
	Secret []byte `json:"secret"`
}

// prefix begins each token, for people and for those who search for leaked ones.
const prefix = "cartwheel-join-"

// maxText bounds a token's text.
const maxText = 8192

// String writes the token as one word.
func (t Token) String() string {
	data, err := json.Marshal(t)
	if err != nil {
		return "" // it has nothing that JSON lacks
	}
	return prefix + base64.RawURLEncoding.EncodeToString(data)
}

// Parse reads a token. What is none is a fault of kind Invalid.
func Parse(text string) (Token, error) {
	const op fault.Op = "join.Parse"
	var t Token
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok || len(text) > maxText {
		return t, fault.E(fault.Invalid, op, "token", "is not one that `cartwheel cluster token` made: it begins with "+prefix)
	}
	data, err := base64.RawURLEncoding.DecodeString(coded)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err == nil {
		_, err = wire.ParseKey(t.Secret)
	}
	if err != nil || len(t.GeoConfig) == 0 || t.Site == "" || t.Name == "" {
		return Token{}, &fault.Error{Kind: fault.Invalid, Op: op, Subject: "token", Cause: err, Public: "is damaged: copy all of it, on one line"}
	}
	return t, nil
}

// Expired reports whether the token's time is over, by the clock given.
func (t Token) Expired(now time.Time) bool { return now.UnixNano() > t.ExpiresNS }
