package api

import (
	"context"
	"mime"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/people"
)

// SessionView is the session that a request belongs to.
type SessionView struct {
	Account string `json:"account" doc:"The account that is signed in; local: a program with the node's token."`
	Role    string `json:"role" enum:"viewer,operator,administrator"`
	CSRF    string `json:"csrf,omitempty" doc:"To be sent as X-Cartwheel-CSRF with each change."`
	// ID is absent for programs.
	ID          string     `json:"id,omitempty"`
	CreatedAt   *time.Time `json:"created_at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"When the session ends unless it is used."`
	HasPassword bool       `json:"has_password" doc:"The account can sign in by a password."`
	Degraded    bool       `json:"degraded" doc:"The configuration store does not answer: the session is one of a viewer meanwhile."`
}

// SignIn is what a person shows: a name and a password, or the token of a link.
type SignIn struct {
	Name     string `json:"name,omitempty" maxLength:"256"`
	Password string `json:"password,omitempty" maxLength:"1024"`
	Link     string `json:"link,omitempty" maxLength:"256" doc:"The token of a one-time link."`
}

// signedIn is an answer that sets the session's cookie.
type signedIn struct {
	SetCookie string `header:"Set-Cookie"`
	Body      SessionView
}

type signInInput struct {
	// ContentType has to be that of JSON, which no form can send.
	ContentType string `header:"Content-Type"`
	Body        SignIn
}

// people returns the service, or says that there is none.
func (s *Server) people() (*people.Service, error) {
	if s.o.People == nil {
		return nil, fault.E(fault.NotSupported, "api.people", "", "this node knows no accounts: ask another node")
	}
	return s.o.People, nil
}

// by is on whose behalf a request changes something.
func by(ctx context.Context) people.Actor {
	return people.Actor{Who: principal(ctx).Name, From: callerOf(ctx).origin.Address}
}

func (s *Server) viewSession(ctx context.Context, session people.Session, token string) (SessionView, error) {
	created, expires := session.Created.UTC(), session.Expires.UTC()
	v := SessionView{Account: session.Account, Role: string(session.Role), CSRF: people.CSRF(token), ID: session.ID,
		CreatedAt: &created, ExpiresAt: &expires, Degraded: session.IsDegraded}
	if session.IsDegraded {
		return v, nil
	}
	a, err := s.o.People.Account(ctx, session.Account)
	v.HasPassword = a.HasPassword
	return v, err
}

func (s *Server) getSession(ctx context.Context, _ *view.None) (*view.Answer[SessionView], error) {
	c := callerOf(ctx)
	if c.session.ID == "" {
		p := principal(ctx)
		return &view.Answer[SessionView]{Body: SessionView{Account: p.Name, Role: p.Role.String()}}, nil
	}
	v, err := s.viewSession(ctx, c.session, c.token)
	return &view.Answer[SessionView]{Body: v}, err
}

// mayChange names the account that may change something.
type mayChange struct {
	Account string `header:"X-Cartwheel-Account" doc:"The account that is signed in, for logs."`
}

func (s *Server) checkChange(ctx context.Context, _ *view.None) (*mayChange, error) {
	return &mayChange{Account: principal(ctx).Name}, nil
}

// signIn always makes a new session. One that the browser had ends, so that none
// stays behind unseen.
func (s *Server) signIn(ctx context.Context, in *signInInput) (*signedIn, error) {
	const op fault.Op = "api.signIn"
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(in.ContentType); err != nil || kind != "application/json" {
		return nil, fault.E(fault.Invalid, op, "Content-Type", "has to be application/json")
	}
	byLink, byPassword := in.Body.Link != "", in.Body.Name != "" || in.Body.Password != ""
	if byLink == byPassword {
		return nil, fault.E(fault.Invalid, op, "body", "needs either a link, or a name and a password")
	}
	c := callerOf(ctx)
	var token string
	var session people.Session
	if byLink {
		token, session, err = p.UseLink(ctx, in.Body.Link, c.origin)
	} else {
		token, session, err = p.SignIn(ctx, in.Body.Name, in.Body.Password, c.origin)
	}
	if err != nil {
		return nil, err
	}
	return s.enter(ctx, token, session)
}

// enter answers with a new session, and ends the one that the browser had.
func (s *Server) enter(ctx context.Context, token string, session people.Session) (*signedIn, error) {
	c := callerOf(ctx)
	if c.token != "" {
		if _, err := s.o.People.Authenticate(ctx, c.token); err == nil {
			if err := s.o.People.SignOut(ctx, c.token, c.origin); err != nil {
				return nil, err
			}
		}
	}
	v, err := s.viewSession(ctx, session, token)
	if err != nil {
		return nil, err
	}
	return &signedIn{SetCookie: c.cookie(token), Body: v}, nil
}

// signedOut is an answer that takes the session's cookies away.
type signedOut struct {
	SetCookie []string `header:"Set-Cookie"`
}

func (s *Server) signOut(ctx context.Context, _ *view.None) (*signedOut, error) {
	c := callerOf(ctx)
	if c.session.ID != "" {
		if err := s.o.People.SignOut(ctx, c.token, c.origin); err != nil {
			return nil, err
		}
	}
	return &signedOut{SetCookie: c.noCookies()}, nil
}

// PasswordChange is one's own new password.
type PasswordChange struct {
	Old string `json:"old,omitempty" maxLength:"1024" doc:"The password so far; absent where the account has none."`
	New string `json:"new" maxLength:"1024" doc:"12 characters at least."`
}

type passwordInput struct{ Body PasswordChange }

func (s *Server) changePassword(ctx context.Context, in *passwordInput) (*signedIn, error) {
	const op fault.Op = "api.changePassword"
	c := callerOf(ctx)
	if c.session.ID == "" {
		return nil, fault.E(fault.NotSupported, op, principal(ctx).Name, "is no account of a person: cartwheel account password sets one's password")
	}
	a, err := s.o.People.Account(ctx, c.session.Account)
	if err != nil {
		return nil, err
	}
	if a.HasPassword {
		err = s.o.People.ChangePassword(ctx, a.Name, in.Body.Old, in.Body.New, c.origin)
		if fault.Is(err, fault.Unauthorized) {
			// The session is good: it is the body that is wrong.
			err = fault.E(fault.Invalid, op, "body.old", "is not the password of the account")
		}
	} else {
		_, err = s.o.People.SetPassword(ctx, by(ctx), a.Name, in.Body.New, a.Revision)
	}
	if err != nil {
		return nil, err
	}
	token, session, err := s.o.People.SignIn(ctx, a.Name, in.Body.New, c.origin)
	if err != nil {
		return nil, err
	}
	return s.enter(ctx, token, session)
}
