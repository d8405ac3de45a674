package people

import (
	"context"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// errWrong is the answer to every wrong guess: it does not tell whether there is
// such an account, or whether it is disabled or has no password.
var errWrong = fault.E(fault.Unauthorized, "people.SignIn", "", "the name or the password is wrong")

// SignIn opens a session for a name and a password, and returns its token.
// Errors: Unauthorized (one answer for every reason), Overloaded (too many
// guesses, or too many people at once).
func (s *Service) SignIn(ctx context.Context, name, password string, from Origin) (string, Session, error) {
	a, err := s.verify(ctx, name, password, from)
	if err != nil {
		return "", Session{}, err
	}
	return s.open(ctx, a, from, geoconfig.Batch{}, "by password")
}

// ChangePassword sets an account's password for somebody who knows the old one.
// All of the account's sessions end. Errors: those of SignIn and SetPassword.
func (s *Service) ChangePassword(ctx context.Context, name, old, password string, from Origin) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	a, err := s.verify(ctx, name, old, from)
	if err != nil {
		return err
	}
	_, err = s.SetPassword(ctx, Actor{Who: "account/" + a.name, From: cut(from.Address, maxOriginBytes)}, a.name, password, a.revision)
	return err
}

// verify checks a password. It computes one hash, whether there is such an
// account or not.
func (s *Service) verify(ctx context.Context, name, password string, from Origin) (account, error) {
	named, origin := cut(name, maxNameBytes+1), originKey(from.Address)
	if err := s.admit(ctx, named, origin); err != nil {
		return account{}, err
	}
	a, err := s.account(ctx, "people.SignIn", name)
	exists := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		s.refund(named, origin)
		return account{}, err
	}
	good, err := s.hasher.matches(ctx, a.Hash, password)
	if err != nil {
		s.refund(named, origin)
		return account{}, err
	}
	if !good || !exists || a.Disabled {
		return account{}, errWrong
	}
	s.accounts.clear(named)
	s.origins.refund(origin)
	return a, nil
}

func (s *Service) refund(named, origin string) {
	s.accounts.refund(named)
	s.origins.refund(origin)
}

// admit lets an attempt through, or says how long to wait.
func (s *Service) admit(ctx context.Context, named, origin string) error {
	now := s.o.Wall()
	wait, originBegan := s.origins.attempt(origin, now)
	if wait > 0 {
		return tooMany(wait)
	}
	wait, nameBegan := s.accounts.attempt(named, now)
	if wait > 0 {
		return tooMany(wait) // the origin's attempt counts
	}
	if !originBegan && !nameBegan {
		return nil
	}
	// Once for each series of failures, whether there is such an account or not:
	// so neither the time that it takes nor the log tells. A log that cannot be
	// written is no reason to refuse: a store that is away refuses soon enough.
	_, _ = s.apply(ctx, geoconfig.Batch{}, geoconfig.AuditRecord{
		Who: "address " + origin, Action: "session.throttle", Subject: accountRow(printable(named)), Detail: "too many wrong passwords",
	})
	return nil
}

// tooMany says how long to wait, in whole seconds.
func tooMany(wait time.Duration) error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	return fault.Errorf(fault.Overloaded, "people.SignIn", "", "too many wrong passwords: try again in %d s", seconds)
}

// printable is a name that was tried, as the log may show it.
func printable(name string) string {
	if !isName(name) {
		return "?"
	}
	return name
}

// SetSubject lets an account sign in as a subject of an OIDC provider; an empty
// one takes that back. The account's sessions end. Errors: NotFound, Conflict, Exists (another account has
// the subject).
func (s *Service) SetSubject(ctx context.Context, by Actor, name, issuer, subject string, rev ids.Revision) (Account, error) {
	const op fault.Op = "people.SetSubject"
	a, err := s.account(ctx, op, name)
	if err != nil {
		return Account{}, err
	}
	if rev != 0 && rev != a.revision {
		return Account{}, fault.Errorf(fault.Conflict, op, name, "the account is at revision %d, not %d: read it again", a.revision, rev)
	}
	var b geoconfig.Batch
	if subject != "" && a.Issuer == issuer && a.Subject == subject {
		return a.shown(), nil
	}
	if err := s.dropSubject(ctx, a, &b); err != nil {
		return Account{}, err
	}
	a.Issuer, a.Subject = "", ""
	a.Generation++
	if subject != "" {
		a.Issuer, a.Subject = issuer, subject
		r, err := encode(subjectKind, subjectKey(issuer, subject).Name, name, time.Time{}, 0)
		if err != nil {
			return Account{}, err
		}
		b.Records = append(b.Records, r)
	}
	a, err = s.save(ctx, a, &b, by.did("account.oidc", name, cut(issuer+" "+subject, 1000)))
	if fault.Is(err, fault.Conflict) && fault.SubjectOf(err) == subjectKey(issuer, subject).Row().String() {
		return Account{}, fault.E(fault.Exists, op, name, "another account signs in as this subject: take it from that one first")
	}
	s.forgetAccount(name, err)
	return a.shown(), err
}

// SignInSubject opens a session for a subject whose provider has vouched for it.
// Error: Unauthorized (no account has the subject, or it is disabled).
func (s *Service) SignInSubject(ctx context.Context, issuer, subject string, from Origin) (string, Session, error) {
	const op fault.Op = "people.SignInSubject"
	unknown := fault.E(fault.Unauthorized, op, "", "no account of this cluster belongs to you: ask an administrator to add one")
	key := subjectKey(issuer, subject)
	found, err := s.find(ctx, key)
	if err != nil {
		return "", Session{}, err
	}
	r, ok := found[key]
	if !ok {
		return "", Session{}, unknown
	}
	var name string
	if err := decode(r, &name); err != nil {
		return "", Session{}, err
	}
	a, err := s.account(ctx, op, name)
	if fault.Is(err, fault.NotFound) || err == nil && (a.Disabled || a.Issuer != issuer || a.Subject != subject) {
		return "", Session{}, unknown
	}
	if err != nil {
		return "", Session{}, err
	}
	return s.open(ctx, a, from, geoconfig.Batch{}, "by "+cut(issuer, 500))
}
