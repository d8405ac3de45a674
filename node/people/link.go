package people

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// MaxLinkLife bounds for how long a link may count.
const MaxLinkLife = 24 * time.Hour

// FirstAccount is the name of the administrator whom a cluster without accounts
// gets by its first link.
const FirstAccount = "admin"

// link is the body of a link's record.
type link struct {
	Account string `json:"account"`
	// Founds makes the account with the role of an administrator, if the cluster
	// has no such account yet.
	Founds bool `json:"founds,omitempty"`
	// Generation is the account's; the link ends when that moves on. 0: Founds.
	Generation int64 `json:"generation,omitempty"`
}

// MakeLink returns the token of a link that signs in one account, once. It counts
// for life, MaxLinkLife at most. Errors: NotFound, Permission (the account is
// disabled), Invalid.
func (s *Service) MakeLink(ctx context.Context, by Actor, name string, life time.Duration) (string, error) {
	const op fault.Op = "people.MakeLink"
	a, err := s.account(ctx, op, name)
	if err != nil {
		return "", err
	}
	if a.Disabled {
		return "", fault.E(fault.Permission, op, name, "the account is disabled: enable it first")
	}
	return s.saveLink(ctx, by, link{Account: name, Generation: a.Generation}, life)
}

// FirstLink returns the token of a link that makes the first administrator and
// signs it in. Error: Exists (the cluster has accounts).
func (s *Service) FirstLink(ctx context.Context, by Actor, life time.Duration) (string, error) {
	rows, err := s.o.Store.Read(ctx, geoconfig.Query{Records: 1, RecordKind: accountKind})
	if err != nil {
		return "", err
	}
	if len(rows.Records) > 0 {
		return "", fault.E(fault.Exists, "people.FirstLink", "", "the cluster has accounts: make a link for one of them")
	}
	return s.saveLink(ctx, by, link{Account: FirstAccount, Founds: true}, life)
}

func (s *Service) saveLink(ctx context.Context, by Actor, body link, life time.Duration) (string, error) {
	if life <= 0 || life > MaxLinkLife {
		return "", fault.Errorf(fault.Invalid, "people.MakeLink", body.Account, "a link counts for at most %v, not %v", MaxLinkLife, life)
	}
	token, err := s.newToken(body.Account)
	if err != nil {
		return "", err
	}
	_, id, _ := splitToken(token)
	r, err := encode(linkKind, id, body, s.o.Wall().Add(life), 0)
	if err != nil {
		return "", err
	}
	_, err = s.apply(ctx, geoconfig.Batch{Records: []geoconfig.Record{r}}, by.did("link.make", body.Account, "for "+life.String()))
	return token, err
}

// UseLink opens a session for a link's token. The same batch that opens it
// removes the link, so of two who use it at once one comes in. Errors: Expired
// (unknown, used, expired or revoked: one answer for all), Overloaded.
func (s *Service) UseLink(ctx context.Context, token string, from Origin) (string, Session, error) {
	const op fault.Op = "people.UseLink"
	spent := fault.E(fault.Expired, op, "", "the link was used already, or has expired: ask for another one (cartwheel console link)")
	name, id, ok := splitToken(token)
	if !ok {
		return "", Session{}, spent
	}
	linkKey, accountKey := geoconfig.RecordKey{Kind: linkKind, Name: id}, geoconfig.RecordKey{Kind: accountKind, Name: name}
	found, err := s.find(ctx, linkKey, accountKey)
	if err != nil {
		return "", Session{}, err
	}
	r, isThere := found[linkKey]
	if !isThere || isExpired(r, s.o.Wall()) {
		return "", Session{}, spent
	}
	var body link
	if err := decode(r, &body); err != nil {
		return "", Session{}, err
	}
	b := geoconfig.Batch{Remove: []geoconfig.Removal{removal(r)}}
	a, err := s.linked(ctx, found, accountKey, body, &b)
	if err != nil {
		return "", Session{}, err
	}
	if a.name == "" {
		return "", Session{}, spent
	}
	session, out, err := s.open(ctx, a, from, b, "by link")
	if fault.Is(err, fault.Conflict) {
		return "", Session{}, spent
	}
	return session, out, err
}

// linked returns the account that a link signs in, made by the batch if the link
// founds it; without a name: none. The batch holds only while the account is
// unchanged.
func (s *Service) linked(ctx context.Context, found map[geoconfig.RecordKey]geoconfig.Record, key geoconfig.RecordKey, body link, b *geoconfig.Batch) (account, error) {
	r, exists := found[key]
	if body.Founds {
		rows, err := s.o.Store.Read(ctx, geoconfig.Query{Records: 1, RecordKind: accountKind})
		if err != nil || len(rows.Records) > 0 {
			return account{}, err
		}
		a := s.newAccount(body.Account, Administrator)
		made, err := a.record()
		b.Records = append(b.Records, made)
		return a, err
	}
	if !exists {
		return account{}, nil
	}
	a, err := decodeAccount(r)
	if err != nil || a.Disabled || a.Generation != body.Generation {
		return account{}, err
	}
	b.Records = append(b.Records, r)
	return a, nil
}
