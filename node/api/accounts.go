package api

import (
	"context"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/people"
)

// Account is a person who may use the console.
type Account struct {
	Name        string       `json:"name"`
	Role        string       `json:"role" enum:"viewer,operator,administrator"`
	Disabled    bool         `json:"disabled"`
	HasPassword bool         `json:"has_password"`
	Issuer      string       `json:"issuer,omitempty" doc:"The OIDC provider that vouches for the account."`
	Subject     string       `json:"subject,omitempty" doc:"The account's name there."`
	CreatedAt   time.Time    `json:"created_at"`
	Revision    ids.Revision `json:"revision"`
}

func viewAccount(a people.Account) Account {
	return Account{Name: a.Name, Role: string(a.Role), Disabled: a.Disabled, HasPassword: a.HasPassword, Issuer: a.Issuer, Subject: a.Subject,
		CreatedAt: a.Created.UTC(), Revision: a.Revision}
}

// SessionItem is a session in a list.
type SessionItem struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	Current   bool      `json:"current" doc:"It is the one that asks."`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at" doc:"When it was last used, to a few minutes."`
	ExpiresAt time.Time `json:"expires_at"`
	Address   string    `json:"address,omitempty"`
	Agent     string    `json:"agent,omitempty"`
}

type sessionsInput struct {
	All bool `query:"all" doc:"Those of all accounts, for administrators."`
}

func (s *Server) listSessions(ctx context.Context, in *sessionsInput) (*view.Answer[view.List[SessionItem]], error) {
	const op fault.Op = "api.listSessions"
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	c := callerOf(ctx)
	name := c.session.Account
	if who := principal(ctx); in.All && who.Role < Administrator {
		return nil, fault.Errorf(fault.Permission, op, who.Name, "needs the role %s to see the sessions of others", Administrator)
	}
	if in.All {
		name = ""
	} else if name == "" {
		return view.ListOf[SessionItem](nil, s.reads.Fresh()), nil // a program has none
	}
	list, err := p.Sessions(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []SessionItem
	for _, x := range list {
		out = append(out, SessionItem{ID: x.ID, Account: x.Account, Current: x.ID == c.session.ID, CreatedAt: x.Created.UTC(), SeenAt: x.Seen.UTC(),
			ExpiresAt: x.Expires.UTC(), Address: x.Address, Agent: x.Agent})
	}
	return view.ListOf(out, s.reads.Fresh()), nil
}

type sessionInput struct {
	ID string `path:"id" maxLength:"64"`
}

func (s *Server) revokeSession(ctx context.Context, in *sessionInput) (*view.None, error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	owner := ""
	if principal(ctx).Role < Administrator {
		if owner = callerOf(ctx).session.Account; owner == "" {
			return nil, fault.E(fault.NotFound, "api.revokeSession", in.ID, "there is no such session; it may have ended")
		}
	}
	return &view.None{}, p.Revoke(ctx, by(ctx), in.ID, owner)
}

func (s *Server) listAccounts(ctx context.Context, _ *view.None) (*view.Answer[view.List[Account]], error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	list, err := p.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var out []Account
	for _, a := range list {
		out = append(out, viewAccount(a))
	}
	return view.ListOf(out, s.reads.Fresh()), nil
}

type accountInput struct {
	Name    string `path:"name" maxLength:"63"`
	IfMatch string `header:"If-Match" doc:"The revision that the caller has seen, as its ETag."`
}

func (in *accountInput) isConditional() bool { return in.IfMatch != "" }

// accountAnswer answers with an account as it is now.
func accountAnswer(a people.Account, err error) (*view.Answer[Account], error) {
	if err != nil {
		return nil, err
	}
	return view.One(a.Revision, viewAccount(a)), nil
}

func (s *Server) getAccount(ctx context.Context, in *accountInput) (*view.Answer[Account], error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	return accountAnswer(p.Account(ctx, in.Name))
}

// NewAccount is an account to be added. It has no password at first.
type NewAccount struct {
	Name string `json:"name" maxLength:"63" doc:"Small letters, digits, and ._@- after the first."`
	Role string `json:"role" enum:"viewer,operator,administrator"`
}

type newAccountInput struct{ Body NewAccount }

func (s *Server) addAccount(ctx context.Context, in *newAccountInput) (*view.Answer[Account], error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	return accountAnswer(p.Add(ctx, by(ctx), in.Body.Name, people.Role(in.Body.Role)))
}

// AccountChange is what may change of an account; absent: it stays.
type AccountChange struct {
	Role     string `json:"role,omitempty" enum:"viewer,operator,administrator"`
	Disabled *bool  `json:"disabled,omitempty"`
}

type accountChangeInput struct {
	Name    string `path:"name" maxLength:"63"`
	IfMatch string `header:"If-Match" doc:"The revision that the caller has seen, as its ETag."`
	Body    AccountChange
}

func (in *accountChangeInput) isConditional() bool { return in.IfMatch != "" }

// changeAccount makes one change after the other: each is in the audit log.
func (s *Server) changeAccount(ctx context.Context, in *accountChangeInput) (*view.Answer[Account], error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	rev, err := seenRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	a, err := p.Account(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if rev == 0 {
		rev = a.Revision
	}
	if in.Body.Role != "" {
		if a, err = p.SetRole(ctx, by(ctx), in.Name, people.Role(in.Body.Role), rev); err != nil {
			return nil, err
		}
		rev = a.Revision
	}
	if in.Body.Disabled != nil && *in.Body.Disabled != a.Disabled {
		a, err = p.SetDisabled(ctx, by(ctx), in.Name, *in.Body.Disabled, rev)
	}
	return accountAnswer(a, err)
}

func (s *Server) removeAccount(ctx context.Context, in *accountInput) (*view.None, error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	rev, err := seenRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	return &view.None{}, p.Remove(ctx, by(ctx), in.Name, rev)
}

// seenRevision reads an ETag as etag writes it; 0: none was sent.
func seenRevision(tag string) (ids.Revision, error) {
	if tag == "" || tag == "*" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
	if err != nil || n == 0 {
		return 0, fault.E(fault.Invalid, "api.seenRevision", "If-Match", "is no ETag of this API")
	}
	return ids.Revision(n), nil
}

// Link is a one-time link. Its token is shown this once.
type Link struct {
	Path      string    `json:"path" doc:"To be put behind the console's address: its part after the # reaches no server."`
	Account   string    `json:"account"`
	ExpiresAt time.Time `json:"expires_at"`
}

// linkLife is for how long a link of the console counts.
const linkLife = time.Hour

func (s *Server) makeLink(ctx context.Context, in *accountInput) (*view.Answer[Link], error) {
	p, err := s.people()
	if err != nil {
		return nil, err
	}
	token, err := p.MakeLink(ctx, by(ctx), in.Name, linkLife)
	if err != nil {
		return nil, err
	}
	return &view.Answer[Link]{Body: Link{Path: people.LinkURL("", token), Account: in.Name, ExpiresAt: s.o.Wall().Add(linkLife).UTC()}}, nil
}

// SubjectChange says as whom an account signs in at the node's OIDC provider.
type SubjectChange struct {
	Subject string `json:"subject" maxLength:"255" doc:"The account's name there, as its tokens have it in sub; empty: none."`
}

type subjectInput struct {
	Name    string `path:"name" maxLength:"63"`
	IfMatch string `header:"If-Match" doc:"The revision that the caller has seen, as its ETag."`
	Body    SubjectChange
}

func (s *Server) setSubject(ctx context.Context, in *subjectInput) (*view.Answer[Account], error) {
	i, err := s.issuer()
	if err != nil {
		return nil, err
	}
	rev, err := seenRevision(in.IfMatch)
	if err != nil {
		return nil, err
	}
	return accountAnswer(s.o.People.SetSubject(ctx, by(ctx), in.Name, i.Name(), in.Body.Subject, rev))
}
