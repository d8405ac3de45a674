package issuer_test

import (
	"context"
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

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people/issuer"
)

// provider is one of OpenID Connect on a loopback address: it lets everybody in
// as "ann-7", and checks what a provider has to check.
type provider struct {
	*testing.T
	*httptest.Server
	key   *rsa.PrivateKey
	spoil func(claims map[string]any) // what the test makes wrong

	mu    sync.Mutex
	codes map[string]url.Values // what each code was given for; once
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{T: t, key: key, codes: map[string]url.Values{}}
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

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != "console" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	asked, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	if id == "" {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != "console" || secret != "hush" || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "console", "sub": "ann-7", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	if p.spoil != nil {
		p.spoil(claims)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		p.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","id_token":%q}`, oidctest.SignIDToken(p.key, "k", oidc.RS256, string(text)))
}

func (p *provider) client() *issuer.Client {
	return issuer.New(issuer.Options{Issuer: p.URL, ID: "console", Secret: "hush", Redirect: "https://console.example/callback", Rand: rand.Reader})
}

// visit goes where Start says, and returns what the provider sends back.
func (p *provider) visit(address string) (state, code string) {
	p.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(address)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		p.Fatalf("%s: %v", answer.Status, err)
	}
	return back.Query().Get("state"), back.Query().Get("code")
}

func TestFinish_NamesTheSubject(t *testing.T) {
	p := newProvider(t)
	c := p.client()
	address, secret, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, code := p.visit(address)
	if subject, err := c.Finish(t.Context(), secret, state, code); err != nil || subject != "ann-7" {
		t.Fatalf("got %q, %v", subject, err)
	}
	if _, err := c.Finish(t.Context(), secret, state, code); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the same code again: got %v, want unauthorized", err)
	}
}

func TestFinish_RefusesWhatDoesNotFit(t *testing.T) {
	p := newProvider(t)
	c := p.client()
	for what, forge := range map[string]func(secret, state, code *string){
		"no cookie":            func(secret, _, _ *string) { *secret = "" },
		"another's cookie":     func(secret, _, _ *string) { _, *secret, _ = c.Start(t.Context()) },
		"another state":        func(_, state, _ *string) { *state = "x" },
		"no state, no cookie":  func(secret, state, _ *string) { *secret, *state = "..", "" },
		"no code":              func(_, _, code *string) { *code = "" },
		"a code of another":    func(_, _, code *string) { a, _, _ := c.Start(t.Context()); _, *code = p.visit(a) },
		"another verifier":     func(secret, _, _ *string) { *secret += "x" },
		"a token for others":   func(_, _, _ *string) { p.spoil = func(m map[string]any) { m["aud"] = "another" } },
		"an old token":         func(_, _, _ *string) { p.spoil = func(m map[string]any) { m["exp"] = 1 } },
		"another nonce":        func(_, _, _ *string) { p.spoil = func(m map[string]any) { m["nonce"] = "x" } },
		"no nonce":             func(_, _, _ *string) { p.spoil = func(m map[string]any) { delete(m, "nonce") } },
		"no subject":           func(_, _, _ *string) { p.spoil = func(m map[string]any) { m["sub"] = "" } },
		"a token of elsewhere": func(_, _, _ *string) { p.spoil = func(m map[string]any) { m["iss"] = "https://evil.example" } },
	} {
		p.spoil = nil
		address, secret, err := c.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state, code := p.visit(address)
		forge(&secret, &state, &code)
		if subject, err := c.Finish(t.Context(), secret, state, code); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %q, %v, want unauthorized", what, subject, err)
		}
	}
}

func TestStart_OutlivesAProviderThatWasAway(t *testing.T) {
	p := newProvider(t)
	away := issuer.New(issuer.Options{Issuer: p.URL + "/nowhere", Rand: rand.Reader})
	if _, _, err := away.Start(t.Context()); !fault.Is(err, fault.Unreachable) {
		t.Errorf("got %v, want unreachable", err)
	}
	c := p.client()
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel() // of the first one; the keys are read after it
	address, secret, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, code := p.visit(address)
	if _, err := c.Finish(t.Context(), secret, state, code); err != nil {
		t.Errorf("after the first request ended: %v", err)
	}
}
