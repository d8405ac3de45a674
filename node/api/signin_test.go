package api_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/people/issuer"
	"cartwheel.dev/node/people/issuertest"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

const secret = "correct horse battery"

// console is an API that people sign in to, over https through a proxy of its own
// machine.
type console struct {
	*testing.T
	f   *fleet
	s   *people.Service
	api *api.Server
	idp *issuertest.Provider
	// issuer is how the API speaks to idp.
	issuer *issuer.Client
}

// witness signs with a node's key, and believes whoever has the key of an ID.
type witness struct{ key wire.Key }

func (w witness) Self() ids.Node                   { return ids.Node(w.key.KeyID()) }
func (w witness) Sign(data []byte) ([]byte, error) { return w.key.Sign(data) }
func (w witness) Verify(by ids.Node, data, signature []byte) error {
	return wire.VerifyID(string(by), data, signature)
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{T: t, f: newFleet(t, 3)}
	c.s = people.New(people.Options{Store: c.f.store, Witness: witness{wiretest.Key(t, 1)}, Cost: people.Cost{MemoryKiB: 64, Passes: 1}})
	c.idp = issuertest.Start(t)
	c.issuer = issuer.New(issuer.Options{Issuer: c.idp.URL, ID: issuertest.Client, Secret: issuertest.Secret, Redirect: "https://localhost" + api.CallbackPath, Rand: rand.Reader})
	c.api = c.serve(c.s)
	for name, role := range map[string]people.Role{"vera": people.Viewer, "otto": people.Operator, "ann": people.Administrator, "ada": people.Administrator} {
		_, err := c.s.Add(t.Context(), people.Actor{Who: "test"}, name, role)
		if err == nil {
			_, err = c.s.SetPassword(t.Context(), people.Actor{Who: "test"}, name, secret, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// serve starts an API over a service.
func (c *console) serve(s *people.Service) *api.Server {
	out := api.New(api.Options{Self: "n1", Site: "oslo", Directory: c.f.directory, Store: c.f.store, Asker: c.f, People: s, Issuer: c.issuer, Auth: api.Sessions{People: s}})
	c.Cleanup(func() { _ = out.Close() })
	return out
}

// browser is what one browser sends.
type browser struct {
	c       *console
	cookies []string // name=value
	csrf    string
	address string
	headers map[string]string
	http    bool // over http
}

func (c *console) browser() *browser {
	return &browser{c: c, address: "203.0.113.7", headers: map[string]string{}}
}

// send wants a status, and keeps the cookies of the answer.
func (b *browser) send(want int, method, path string, body any) *httptest.ResponseRecorder {
	b.c.Helper()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			b.c.Fatal(err)
		}
	}
	r := httptest.NewRequestWithContext(b.c.Context(), method, "/api/v1"+path, &in)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:999"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", "198.51.100.1, "+b.address) // the first is the client's own invention
	if !b.http {
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	r.Header.Set(api.CSRFHeader, b.csrf)
	for _, k := range b.cookies {
		r.Header.Add("Cookie", k)
	}
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	b.c.api.Handler().ServeHTTP(w, r)
	if w.Code != want {
		b.c.Fatalf("%s %s: got %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	for _, line := range w.Header()["Set-Cookie"] {
		b.keep(line)
	}
	return w
}

// keep does as the answer says of a cookie.
func (b *browser) keep(line string) {
	b.c.Helper()
	k, err := http.ParseSetCookie(line)
	if err != nil {
		b.c.Fatal(err)
	}
	b.cookies = slices.DeleteFunc(slices.Clone(b.cookies), func(c string) bool { return strings.HasPrefix(c, k.Name+"=") })
	if k.MaxAge >= 0 {
		b.cookies = append(b.cookies, k.Name+"="+k.Value)
	}
}

func (b *browser) signIn(name string) *httptest.ResponseRecorder {
	b.c.Helper()
	w := b.send(http.StatusOK, "POST", "/session", api.SignIn{Name: name, Password: secret})
	var v api.SessionView
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || v.Account != name || v.CSRF == "" {
		b.c.Fatalf("got %+v, %v", v, err)
	}
	b.csrf = v.CSRF
	return w
}

func TestSession_CookieIsOutOfReach(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	w := b.signIn("vera")
	token := strings.TrimPrefix(b.cookies[0], "__Host-cartwheel-session=")
	if got, want := w.Header().Get("Set-Cookie"), "__Host-cartwheel-session="+token+"; Path=/; HttpOnly; Secure; SameSite=Strict"; got != want {
		t.Errorf("got cookie %q, want %q", got, want)
	}
	if strings.Contains(w.Body.String(), token) {
		t.Error("the body has the token, so scripts can read it")
	}
	plain := c.browser()
	plain.http = true
	if got := plain.signIn("vera").Header().Get("Set-Cookie"); !strings.HasPrefix(got, "cartwheel-session=") || !strings.HasSuffix(got, "; Path=/; HttpOnly; SameSite=Strict") {
		t.Errorf("over http: got cookie %q", got)
	}
	// Over https a plain cookie does not count: someone on the way may have set it.
	plain.http = false
	plain.send(http.StatusUnauthorized, "GET", "/overview", nil)
}

func TestSession_GivesAVoucherForOtherNodes(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.signIn("otto")
	set := b.send(http.StatusOK, "GET", "/session", nil).Header().Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Host-cartwheel-voucher=") || !strings.HasSuffix(set, "; Path=/; HttpOnly; Secure; SameSite=Strict") {
		t.Fatalf("got the cookie %q", set)
	}
	if again := b.send(http.StatusOK, "GET", "/session", nil).Header().Get("Set-Cookie"); again != "" {
		t.Errorf("the next answer sets %q", again)
	}
	if len(b.cookies) != 2 {
		t.Fatalf("the browser has the cookies %q", b.cookies)
	}
	first := c.api
	c.api = c.serve(people.New(people.Options{Store: c.f.store, Witness: witness{wiretest.Key(t, 2)}})) // at another node
	c.f.store.away.Store(true)
	var v api.SessionView
	if err := json.Unmarshal(b.send(http.StatusOK, "GET", "/session", nil).Body.Bytes(), &v); err != nil || v.Account != "otto" || v.Role != "viewer" || !v.Degraded {
		t.Errorf("another node, without the store, takes the session as %+v, %v", v, err)
	}
	c.f.store.away.Store(false)
	c.api = first
	b.send(http.StatusNoContent, "DELETE", "/session", nil)
	if len(b.cookies) != 0 {
		t.Errorf("after the sign-out the browser has the cookies %q", b.cookies)
	}
}

func TestSession_FixationAndReuseFail(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.cookies = []string{"__Host-cartwheel-session=chosen.vera"}
	b.send(http.StatusUnauthorized, "GET", "/session", nil)
	b.signIn("vera")
	if strings.Contains(b.cookies[0], "chosen") {
		t.Fatal("a sign-in keeps the token that the browser had")
	}
	first := *b
	b.signIn("otto") // in the same browser: the first session ends
	first.send(http.StatusUnauthorized, "GET", "/session", nil)
	second := *b
	b.send(http.StatusNoContent, "DELETE", "/session", nil)
	b.send(http.StatusUnauthorized, "GET", "/session", nil)
	second.send(http.StatusUnauthorized, "GET", "/session", nil)
}

// TestSession_ChecksChangesElsewhere asks as the console's gateway does, before it
// changes a file for a visitor.
func TestSession_ChecksChangesElsewhere(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.send(http.StatusUnauthorized, "GET", "/session/change", nil)
	b.signIn("vera")
	if w := b.send(http.StatusForbidden, "GET", "/session/change", nil); !strings.Contains(w.Body.String(), "operator") {
		t.Errorf("a viewer hears %s", w.Body)
	}
	b = c.browser()
	b.signIn("otto")
	if got := b.send(http.StatusNoContent, "GET", "/session/change", nil).Header().Get("X-Cartwheel-Account"); got != "account/otto" {
		t.Errorf("got the account %q", got)
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example", api.CSRFHeader: ""} {
		b.headers = map[string]string{name: value}
		b.send(http.StatusForbidden, "GET", "/session/change", nil)
	}
}

// TestSession_ChangesNeedTheToken has pages of other origins, and old browsers
// that do not say where a request comes from, use the cookie.
func TestSession_ChangesNeedTheToken(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.signIn("ann")
	other := c.browser()
	other.signIn("ada")
	good := b.csrf
	for what, csrf := range map[string]string{"none": "", "another session's": other.csrf, "a guess": "x"} {
		b.csrf = csrf
		w := b.send(http.StatusForbidden, "POST", "/accounts", api.NewAccount{Name: "eve", Role: "administrator"})
		if !strings.Contains(w.Body.String(), api.CSRFHeader) {
			t.Errorf("%s: the refusal says %s", what, w.Body)
		}
		b.send(http.StatusForbidden, "DELETE", "/accounts/vera", nil)
		b.send(http.StatusForbidden, "DELETE", "/session", nil)
	}
	b.csrf = good
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		b.headers = map[string]string{name: value}
		b.send(http.StatusForbidden, "POST", "/accounts", api.NewAccount{Name: "eve", Role: "administrator"})
		b.send(http.StatusForbidden, "POST", "/session", api.SignIn{Name: "vera", Password: secret})
	}
	b.headers = map[string]string{"Host": "localhost"}
	if _, err := c.s.Account(t.Context(), "eve"); err == nil {
		t.Fatal("eve was added")
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"} {
		form := c.browser()
		form.headers["Content-Type"] = kind
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/session", strings.NewReader(`{"name":"vera","password":"`+secret+`"}`))
		r.Host = "localhost"
		r.Header.Set("Content-Type", kind)
		c.api.Handler().ServeHTTP(w, r)
		if w.Code < 400 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("a form of type %q signs in: %d", kind, w.Code)
		}
	}
	b.headers = nil
	b.send(http.StatusOK, "POST", "/accounts", api.NewAccount{Name: "bob", Role: "viewer"})
}

func TestSession_ChangesByNoGet(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.signIn("ann")
	before, err := c.f.store.Follow(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for route := range described(t, c.f) {
		method, path, _ := strings.Cut(route, " ")
		if method != "GET" || strings.HasSuffix(path, "/events") {
			continue
		}
		r := httptest.NewRequestWithContext(t.Context(), method, strings.NewReplacer("{name}", "ann", "{id}", "1").Replace(path), nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:9"
		r.Header.Set("X-Forwarded-Proto", "https")
		r.Header.Set("Cookie", b.cookies[0])
		w := httptest.NewRecorder()
		c.api.Handler().ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusNotImplemented {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
	if after, err := c.f.store.Follow(t.Context(), 0, 0); err != nil || after.Revision != before.Revision {
		t.Errorf("reading changed something: revision %d, then %d, %v", before.Revision, after.Revision, err)
	}
}

func TestSignIn_AnswersEveryWrongGuessAlike(t *testing.T) {
	c := newConsole(t)
	answer := func(name string) string {
		b := c.browser()
		b.address = "203.0.113." + fmt.Sprint(len(name))
		w := b.send(http.StatusUnauthorized, "POST", "/session", api.SignIn{Name: name, Password: "a wrong password"})
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		p.RequestID = ""
		return fmt.Sprintf("%+v %q", p, w.Header()["Set-Cookie"])
	}
	if known, unknown := answer("ann"), answer("nobody"); known != unknown {
		t.Errorf("got %s for an account, %s for none", known, unknown)
	}
	b := c.browser()
	for range 5 {
		b.send(http.StatusUnauthorized, "POST", "/session", api.SignIn{Name: "vera", Password: "a wrong password"})
	}
	b.send(http.StatusTooManyRequests, "POST", "/session", api.SignIn{Name: "vera", Password: secret})
	b.send(http.StatusBadRequest, "POST", "/session", api.SignIn{})
	b.send(http.StatusBadRequest, "POST", "/session", api.SignIn{Name: "vera", Password: secret, Link: "x"})
	b.send(http.StatusUnprocessableEntity, "POST", "/session", map[string]string{"name": "vera", "password": secret, "role": "administrator"})
}

// TestSignIn_CountsTheClientsAddress guesses from one address through a proxy.
func TestSignIn_CountsTheClientsAddress(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	for i := range 20 {
		b.send(http.StatusUnauthorized, "POST", "/session", api.SignIn{Name: fmt.Sprint("user", i), Password: "a wrong password"})
	}
	b.send(http.StatusTooManyRequests, "POST", "/session", api.SignIn{Name: "vera", Password: secret})
	elsewhere := c.browser()
	elsewhere.address = "203.0.113.8"
	elsewhere.signIn("vera")
}

func TestLink_OpensTheConsoleOnce(t *testing.T) {
	c := newConsole(t)
	admin := c.browser()
	admin.signIn("ann")
	admin.send(http.StatusOK, "POST", "/accounts", api.NewAccount{Name: "new", Role: "operator"})
	var link api.Link
	if err := json.Unmarshal(admin.send(http.StatusOK, "POST", "/accounts/new/link", nil).Body.Bytes(), &link); err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(link.Path, "/sign-in#link=")
	if !ok || time.Until(link.ExpiresAt) > time.Hour {
		t.Fatalf("got %+v", link)
	}
	b := c.browser()
	var v api.SessionView
	if err := json.Unmarshal(b.send(http.StatusOK, "POST", "/session", api.SignIn{Link: token}).Body.Bytes(), &v); err != nil || v.Role != "operator" || v.HasPassword {
		t.Fatalf("got %+v, %v", v, err)
	}
	c.browser().send(http.StatusGone, "POST", "/session", api.SignIn{Link: token})
	b.csrf = v.CSRF
	b.send(http.StatusBadRequest, "PUT", "/session/password", api.PasswordChange{New: "too short"})
	b.send(http.StatusOK, "PUT", "/session/password", api.PasswordChange{New: secret})
	if err := json.Unmarshal(b.send(http.StatusOK, "GET", "/session", nil).Body.Bytes(), &v); err != nil || !v.HasPassword {
		t.Fatalf("got %+v, %v", v, err)
	}
	b.csrf = v.CSRF
	old := *b
	b.send(http.StatusBadRequest, "PUT", "/session/password", api.PasswordChange{Old: "wrong", New: "another long secret"})
	b.send(http.StatusOK, "PUT", "/session/password", api.PasswordChange{Old: secret, New: "another long secret"})
	b.send(http.StatusOK, "GET", "/session", nil)
	old.send(http.StatusUnauthorized, "GET", "/session", nil)
}

func TestAccounts_AreChangedByRevision(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	b.signIn("ann")
	victim := c.browser()
	victim.signIn("vera")
	tag := b.send(http.StatusOK, "GET", "/accounts/vera", nil).Header().Get("ETag")
	b.headers["If-Match"] = tag
	b.send(http.StatusOK, "PUT", "/accounts/vera", api.AccountChange{Role: "operator"})
	b.send(http.StatusPreconditionFailed, "PUT", "/accounts/vera", api.AccountChange{Role: "administrator"})
	b.send(http.StatusPreconditionFailed, "DELETE", "/accounts/vera", nil)
	b.headers["If-Match"] = "no tag"
	b.send(http.StatusBadRequest, "DELETE", "/accounts/vera", nil)
	delete(b.headers, "If-Match")
	victim.send(http.StatusOK, "GET", "/session", nil)
	off := true
	b.send(http.StatusOK, "PUT", "/accounts/vera", api.AccountChange{Disabled: &off})
	victim.send(http.StatusUnauthorized, "GET", "/session", nil)
	b.send(http.StatusNoContent, "DELETE", "/accounts/vera", nil)
	b.send(http.StatusNoContent, "DELETE", "/accounts/ada", nil)
	w := b.send(http.StatusConflict, "DELETE", "/accounts/ann", nil)
	if !strings.Contains(w.Body.String(), "last administrator") {
		t.Errorf("got %s", w.Body)
	}
	log := b.send(http.StatusOK, "GET", "/activity", nil).Body.String()
	for _, want := range []string{"account/ann", "account.remove", "account.disable", "session.sign-in", "203.0.113.7"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}

func TestSessions_OfOthersAreOutOfReach(t *testing.T) {
	c := newConsole(t)
	vera, otto, ann := c.browser(), c.browser(), c.browser()
	vera.signIn("vera")
	otto.signIn("otto")
	ann.signIn("ann")
	list := func(b *browser, path string) (ids map[string]string) {
		var l view.List[api.SessionItem]
		if err := json.Unmarshal(b.send(http.StatusOK, "GET", path, nil).Body.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		ids = map[string]string{}
		for _, x := range l.Items {
			ids[x.Account] = x.ID
		}
		return ids
	}
	all := list(ann, "/sessions?all=true")
	if own := list(otto, "/sessions"); len(all) != 3 || len(own) != 1 || own["otto"] == "" {
		t.Fatalf("all are %v, otto's %v", all, own)
	}
	otto.send(http.StatusForbidden, "GET", "/sessions?all=true", nil)
	otto.send(http.StatusNotFound, "DELETE", "/sessions/"+all["vera"], nil)
	vera.send(http.StatusOK, "GET", "/session", nil)
	ann.send(http.StatusNoContent, "DELETE", "/sessions/"+all["vera"], nil)
	vera.send(http.StatusUnauthorized, "GET", "/session", nil)
}

// TestSignIn_BelievesNoStranger has a stranger say that it is a proxy.
func TestSignIn_BelievesNoStranger(t *testing.T) {
	c := newConsole(t)
	for i := range 21 {
		body := strings.NewReader(fmt.Sprintf(`{"name":"user%d","password":"a wrong password"}`, i))
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/session", body)
		r.Host, r.RemoteAddr = "localhost", "203.0.113.9:5"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
		w := httptest.NewRecorder()
		c.api.Handler().ServeHTTP(w, r)
		if want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[i < 20]; w.Code != want {
			t.Fatalf("guess %d: got %d, want %d", i, w.Code, want)
		}
	}
}
