// Package issuertest is a provider of OpenID Connect on a loopback address, for
// tests. It lets everybody in as one subject, and checks what a provider has to
// check. Spoil is set between requests; all else is safe for concurrent use.
package issuertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// The client that the provider knows, and the subject that it vouches for.
const (
	Client  = "console"
	Secret  = "hush"
	Subject = "ann-7"
)

// provider is one of OpenID Connect on a loopback address: it lets everybody in
// as "ann-7", and checks what a provider has to check.
type Provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey
	// Spoil makes claims of the next tokens wrong; nil: nothing is.
	Spoil func(claims map[string]any)

	mu    sync.Mutex
	codes map[string]url.Values // what each code was given for; once
}

// Start starts a provider, which ends with the test.
func Start(t *testing.T) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{t: t, key: key, codes: map[string]url.Values{}}
	known := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.RS256}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/auth", p.authorize)
	mux.HandleFunc("/token", p.token)
	mux.Handle("/", known)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	known.SetIssuer(p.URL)
	return p
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != Client || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	asked, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	if id == "" {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != Client || secret != Secret || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": Client, "sub": Subject, "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	if p.Spoil != nil {
		p.Spoil(claims)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","id_token":%q}`, oidctest.SignIDToken(p.key, "k", oidc.RS256, string(text)))
}

// Visit goes where Start says, and returns what the provider sends back.
func (p *Provider) Visit(address string) (state, code string) {
	p.t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		p.t.Fatalf("%s: %v", answer.Status, err)
	}
	return back.Query().Get("state"), back.Query().Get("code")
}
