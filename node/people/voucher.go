package people

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"cartwheel.dev/geo-config/ids"
)

// voucher is a node's word that it found a session good. The browser shows it to
// the next node, which believes it while the store cannot be reached. It says no
// role, since such a session is a viewer's, and is worth nothing without the
// session's token.
type voucher struct {
	// Session is the session's ID.
	Session   string   `json:"session"`
	Account   string   `json:"account"`
	By        ids.Node `json:"by"`
	AtNS      int64    `json:"at_ns"`
	CreatedNS int64    `json:"created_ns"`
	ExpiresNS int64    `json:"expires_ns"`
}

const (
	// voucherContext begins what is signed, so that the signature is of no use for
	// anything else.
	voucherContext  = "cartwheel session voucher\x00"
	maxVoucherBytes = 1024
	// maxAhead is how far another node's clock may be ahead.
	maxAhead = 5 * time.Second
	// renewals is how many times a voucher is made anew before it is worth nothing.
	renewals = 10
)

// Vouch returns a voucher for a session that was found good just now, to be given
// to whoever sent the request. It returns "" if the request showed one that is new
// enough, or if this node may give none.
func (s *Service) Vouch(found Session, shown string) string {
	if s.o.Witness == nil || found.IsDegraded {
		return ""
	}
	now := s.o.Wall()
	if last, _, _, ok := splitVoucher(shown); ok && last.Session == found.ID && now.Sub(time.Unix(0, last.AtNS)).Abs() < s.o.Grace/renewals {
		return ""
	}
	v := voucher{Session: found.ID, Account: found.Account, By: s.o.Witness.Self(), AtNS: now.UnixNano(), CreatedNS: found.Created.UnixNano(), ExpiresNS: found.Expires.UnixNano()}
	text, err := s.signVoucher(v)
	if err != nil {
		return "" // the session is as good without one
	}
	return text
}

func (s *Service) signVoucher(v voucher) (string, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	signature, err := s.o.Witness.Sign(append([]byte(voucherContext), body...))
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// splitVoucher reads a voucher and checks nothing.
func splitVoucher(text string) (v voucher, body, signature []byte, ok bool) {
	if len(text) > maxVoucherBytes {
		return voucher{}, nil, nil, false
	}
	first, second, found := strings.Cut(text, ".")
	body, bad := base64.RawURLEncoding.DecodeString(first)
	signature, worse := base64.RawURLEncoding.DecodeString(second)
	if !found || bad != nil || worse != nil || json.Unmarshal(body, &v) != nil {
		return voucher{}, nil, nil, false
	}
	return v, body, signature, true
}

// Accept learns from a voucher that another node found the session of a token
// good, unless this node knows about that session itself. Authenticate makes use
// of it while the store cannot be reached. A voucher that is not good changes
// nothing.
func (s *Service) Accept(token, shown string) {
	_, id, ok := splitToken(token)
	if !ok || shown == "" || s.o.Witness == nil {
		return
	}
	now := s.o.Wall()
	if _, isKnown := s.remembered(id, now); isKnown {
		return
	}
	v, body, signature, ok := splitVoucher(shown)
	at := time.Unix(0, v.AtNS)
	if !ok || v.Session != id || now.Sub(at) > s.o.Grace || at.Sub(now) > maxAhead {
		return
	}
	if s.o.Witness.Verify(v.By, append([]byte(voucherContext), body...), signature) != nil {
		return
	}
	s.remember(Session{
		ID: id, Account: v.Account, Role: Viewer, Created: time.Unix(0, v.CreatedNS), Seen: at, Expires: time.Unix(0, v.ExpiresNS),
	}, at)
}
