package api

import (
	"context"
	"net/http"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/people/issuer"
)

const (
	// secureFlow and plainFlow hold what a browser shows when the provider sends it
	// back.
	secureFlow = "__Host-cartwheel-oidc"
	plainFlow  = "cartwheel-oidc"
	// flowLife is how long somebody may take at the provider.
	flowLife = 10 * time.Minute
	// consolePath is where people go when they are signed in, or were not.
	consolePath, failedPath = "/", "/sign-in?failed=oidc"
)

// CallbackPath is where the provider sends browsers back to, behind the console's
// address.
const CallbackPath = base + "/session/oidc/callback"

// redirect sends a browser elsewhere.
type redirect struct {
	Status    int
	Location  string   `header:"Location"`
	SetCookie []string `header:"Set-Cookie"`
}

// flow is the cookie of a sign-in under way. The provider's page leads back to this
// one, so it is sent with such a visit too; it lets nobody in by itself.
func (c *caller) flow(secret string) string {
	k := http.Cookie{Name: plainFlow, Value: secret, Path: "/", HttpOnly: true, Secure: c.https, SameSite: http.SameSiteLaxMode, MaxAge: int(flowLife / time.Second)}
	if c.https {
		k.Name = secureFlow
	}
	if secret == "" {
		k.MaxAge = -1
	}
	return k.String()
}

func (s *Server) issuer() (*issuer.Client, error) {
	if s.o.Issuer == nil || s.o.People == nil {
		return nil, fault.E(fault.NotSupported, "api.issuer", "", "this node has no OIDC provider: sign in by a password or a link")
	}
	return s.o.Issuer, nil
}

// SignInWays are the ways in which people may sign in at the answering node.
type SignInWays struct {
	Password bool   `json:"password" doc:"By a name and a password, and by one-time links."`
	Issuer   string `json:"issuer,omitempty" doc:"The OIDC provider, to which GET /session/oidc leads; absent: there is none."`
}

// getWays says how people may sign in, to those who have not yet.
func (s *Server) getWays(context.Context, *view.None) (*view.Answer[SignInWays], error) {
	out := SignInWays{Password: s.o.People != nil}
	if i, err := s.issuer(); err == nil {
		out.Issuer = i.Name()
	}
	return &view.Answer[SignInWays]{Body: out}, nil
}

func (s *Server) beginOIDC(ctx context.Context, _ *view.None) (*redirect, error) {
	i, err := s.issuer()
	if err != nil {
		return nil, err
	}
	address, secret, err := i.Start(ctx)
	if err != nil {
		return nil, err
	}
	return &redirect{http.StatusSeeOther, address, []string{callerOf(ctx).flow(secret)}}, nil
}

type callbackInput struct {
	State  string `query:"state" maxLength:"256"`
	Code   string `query:"code" maxLength:"4096"`
	Error  string `query:"error" maxLength:"256" doc:"What the provider says where it signs nobody in."`
	About  string `query:"error_description" maxLength:"4096"`
	URI    string `query:"error_uri" maxLength:"4096"`
	Issuer string `query:"iss" maxLength:"4096"`
	// SessionState and what follows are what some providers add.
	SessionState string `query:"session_state" maxLength:"4096"`
	Scope        string `query:"scope" maxLength:"4096"`
	AuthUser     string `query:"authuser" maxLength:"256"`
	Prompt       string `query:"prompt" maxLength:"256"`
	Domain       string `query:"hd" maxLength:"256"`
	Secure       string `cookie:"__Host-cartwheel-oidc"`
	Plain        string `cookie:"cartwheel-oidc"`
}

// finishOIDC makes a session, though it is asked by GET: the cookie of the same
// browser's beginning is what stands for its will.
func (s *Server) finishOIDC(ctx context.Context, in *callbackInput) (*redirect, error) {
	i, err := s.issuer()
	if err != nil {
		return nil, err
	}
	c := callerOf(ctx)
	secret := in.Plain
	if c.https {
		secret = in.Secure
	}
	if in.Error != "" || in.Issuer != "" && in.Issuer != i.Name() {
		return &redirect{http.StatusSeeOther, failedPath, []string{c.flow("")}}, nil
	}
	entered, err := s.enterSubject(ctx, i, secret, in)
	if fault.Is(err, fault.Unauthorized) { // a person reads the answer, not a program
		return &redirect{http.StatusSeeOther, failedPath, []string{c.flow("")}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &redirect{http.StatusSeeOther, consolePath, []string{c.flow(""), entered.SetCookie}}, nil
}

// enterSubject signs in whom the provider vouches for.
func (s *Server) enterSubject(ctx context.Context, i *issuer.Client, secret string, in *callbackInput) (*signedIn, error) {
	subject, err := i.Finish(ctx, secret, in.State, in.Code)
	if err != nil {
		return nil, err
	}
	token, session, err := s.o.People.SignInSubject(ctx, i.Name(), subject, callerOf(ctx).origin)
	if err != nil {
		return nil, err
	}
	return s.enter(ctx, token, session)
}
