package people

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// nodeKeys are those of a cluster's nodes.
type nodeKeys map[ids.Node]ed25519.PrivateKey

// add makes a node's key.
func (k nodeKeys) add(t *testing.T, node ids.Node) Witness {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k[node] = key
	return signer{node, key, k}
}

// signer is the Witness of one node.
type signer struct {
	self  ids.Node
	key   ed25519.PrivateKey
	known nodeKeys
}

func (s signer) Self() ids.Node                   { return s.self }
func (s signer) Sign(data []byte) ([]byte, error) { return ed25519.Sign(s.key, data), nil }

func (s signer) Verify(by ids.Node, data, signature []byte) error {
	key, ok := s.known[by]
	if !ok || !ed25519.Verify(key.Public().(ed25519.PublicKey), data, signature) {
		return fault.E(fault.Unauthorized, "test", string(by), "did not sign it")
	}
	return nil
}

// pair is two nodes; ann is signed in, and the first one vouched for her.
type pair struct {
	*world
	keys           nodeKeys
	other          *Service
	token, voucher string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{world: newWorld(t), keys: nodeKeys{}}
	p.o.Witness = p.keys.add(t, "n1")
	p.other = p.node()
	p.other.o.Witness = p.keys.add(t, "n2")
	p.add("ann", Administrator)
	p.token = p.signIn("ann")
	p.voucher = p.vouch()
	return p
}

// vouch lets the first node check the session, and say so.
func (p *pair) vouch() string {
	p.Helper()
	v := p.Vouch(p.authenticates(p.Service, p.token, fault.None), "")
	if v == "" {
		p.Fatal("the node gave no voucher")
	}
	return v
}

func (p *pair) storeIsAway() { p.store.err = fault.E(fault.Unreachable, "test", "", "away") }

func TestVoucher_LetsASessionGoOnAtAnotherNode(t *testing.T) {
	p := newPair(t)
	p.storeIsAway()
	p.authenticates(p.other, p.token, fault.Unreachable)
	p.other.Accept(p.token, p.voucher)
	out := p.authenticates(p.other, p.token, fault.None)
	if out.Account != "ann" || out.Role != Viewer || !out.IsDegraded {
		t.Errorf("got %+v, want a viewer", out)
	}
	if again := p.other.Vouch(out, ""); again != "" {
		t.Error("a node vouched for what it could not check")
	}
	p.now = p.now.Add(p.o.Grace + time.Second)
	p.other.Accept(p.token, p.voucher)
	p.authenticates(p.other, p.token, fault.Unreachable)
}

func TestVoucher_CountsForNothingBesideTheStore(t *testing.T) {
	p := newPair(t)
	if err := p.SignOut(t.Context(), p.token, desk); err != nil {
		t.Fatal(err)
	}
	p.other.Accept(p.token, p.voucher)
	p.authenticates(p.other, p.token, fault.Unauthorized)
}

func TestVoucher_IsRefused(t *testing.T) {
	for name, shown := range map[string]func(p *pair) string{
		"none":                  func(*pair) string { return "" },
		"rubbish":               func(*pair) string { return "rubbish" },
		"too long":              func(p *pair) string { return p.voucher + strings.Repeat("A", maxVoucherBytes) },
		"without its signature": func(p *pair) string { return strings.SplitN(p.voucher, ".", 2)[0] + "." },
		"changed": func(p *pair) string {
			v, _, signature, _ := splitVoucher(p.voucher)
			v.ExpiresNS++
			body, err := json.Marshal(v)
			if err != nil {
				p.Fatal(err)
			}
			return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(signature)
		},
		"signed by a stranger":    func(p *pair) string { p.o.Witness = nodeKeys{}.add(p.T, "n1"); return p.vouch() },
		"signed by a former node": func(p *pair) string { delete(p.keys, "n1"); return p.voucher },
		"of another session": func(p *pair) string {
			return p.Vouch(p.authenticates(p.Service, p.signIn("ann"), fault.None), "")
		},
		"of a time to come": func(p *pair) string {
			p.now = p.now.Add(time.Minute)
			defer func() { p.now = p.now.Add(-time.Minute) }()
			return p.vouch()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			v := shown(p)
			p.storeIsAway()
			p.other.Accept(p.token, v)
			p.authenticates(p.other, p.token, fault.Unreachable)
		})
	}
}

func TestVouch_RenewsInTime(t *testing.T) {
	p := newPair(t)
	session := p.authenticates(p.Service, p.token, fault.None)
	if v := p.Vouch(session, p.voucher); v != "" {
		t.Error("a new voucher was renewed")
	}
	p.now = p.now.Add(p.o.Grace / renewals)
	if v := p.Vouch(session, p.voucher); v == "" || v == p.voucher {
		t.Errorf("an old one was not: %q", v)
	}
	if v := p.Vouch(session, "rubbish"); v == "" {
		t.Error("rubbish was taken for a voucher")
	}
	p.o.Witness = nil
	if v := p.Vouch(session, ""); v != "" {
		t.Error("a node without a key vouched")
	}
}
