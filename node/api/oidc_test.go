package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"cartwheel.dev/node/api"
	"cartwheel.dev/node/people/issuertest"
)

// callback is where the provider sends the browser back to.
func callback(state, code string) string {
	return strings.TrimPrefix(api.CallbackPath, "/api/v1") + "?" + url.Values{"state": {state}, "code": {code}}.Encode()
}

func TestOIDC_SignsInWhomTheProviderSends(t *testing.T) {
	c := newConsole(t)
	admin := c.browser()
	admin.signIn("ann")
	admin.send(http.StatusOK, "PUT", "/accounts/otto/subject", api.SubjectChange{Subject: issuertest.Subject})
	b := c.browser()
	w := b.send(http.StatusSeeOther, "GET", "/session/oidc", nil)
	if set := w.Header().Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-cartwheel-oidc=") || !strings.HasSuffix(set, "; Max-Age=600; HttpOnly; Secure; SameSite=Lax") {
		t.Errorf("got cookie %q", set)
	}
	state, code := c.idp.Visit(w.Header().Get("Location"))
	// An attacker's own code in somebody else's browser signs nobody in.
	victim := c.browser()
	for _, cookie := range [][]string{nil, {"__Host-cartwheel-oidc=" + state + ".x.x"}, {strings.Replace(b.cookies[0], "__Host-", "", 1)}} {
		victim.cookies = cookie
		w := victim.send(http.StatusSeeOther, "GET", callback(state, code+"x"), nil)
		if w.Header().Get("Location") != "/sign-in?failed=oidc" {
			t.Errorf("with %q: sent to %s", cookie, w.Header().Get("Location"))
		}
		for _, set := range w.Header().Values("Set-Cookie") {
			if strings.Contains(set, "session") {
				t.Errorf("with %q: got a session: %s", cookie, set)
			}
		}
	}
	w = b.send(http.StatusSeeOther, "GET", callback(state, code), nil)
	var session string
	for _, set := range w.Header().Values("Set-Cookie") {
		if strings.HasPrefix(set, "__Host-cartwheel-session=") && strings.HasSuffix(set, "; Path=/; HttpOnly; Secure; SameSite=Strict") {
			session = strings.SplitN(set, ";", 2)[0]
		}
	}
	if w.Header().Get("Location") != "/" || session == "" {
		t.Fatalf("got %v", w.Header())
	}
	in := c.browser()
	in.cookies = []string{session}
	if got := in.send(http.StatusOK, "GET", "/session", nil).Body.String(); !strings.Contains(got, `"account":"otto"`) || !strings.Contains(got, `"role":"operator"`) {
		t.Errorf("got %s", got)
	}
	// Without the subject the account's sessions end.
	admin.send(http.StatusOK, "PUT", "/accounts/otto/subject", api.SubjectChange{})
	in.send(http.StatusUnauthorized, "GET", "/session", nil)
}

func TestOIDC_SignsInNoStranger(t *testing.T) {
	c := newConsole(t)
	b := c.browser()
	w := b.send(http.StatusSeeOther, "GET", "/session/oidc", nil)
	state, code := c.idp.Visit(w.Header().Get("Location"))
	w = b.send(http.StatusSeeOther, "GET", callback(state, code), nil)
	if w.Header().Get("Location") != "/sign-in?failed=oidc" {
		t.Errorf("a subject without an account is sent to %s", w.Header().Get("Location"))
	}
	w = b.send(http.StatusSeeOther, "GET", "/session/oidc/callback?error=access_denied&state=x", nil)
	if w.Header().Get("Location") != "/sign-in?failed=oidc" {
		t.Errorf("whom the provider refused is sent to %s", w.Header().Get("Location"))
	}
}

func TestWays_NameTheProvider(t *testing.T) {
	c := newConsole(t)
	if got := c.browser().send(http.StatusOK, "GET", "/session/ways", nil).Body.String(); !strings.Contains(got, `"password":true`) || !strings.Contains(got, `"issuer":"`+c.idp.URL) {
		t.Errorf("got %s, want the provider %s", got, c.idp.URL)
	}
	if got := newFleet(t, 1).request(http.MethodGet, "/api/v1/session/ways", "", nil).Body.String(); !strings.Contains(got, `"password":true`) || strings.Contains(got, "issuer") {
		t.Errorf("without a provider: got %s", got)
	}
}
