package people

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Actor is on whose behalf a change is made, for the audit log.
type Actor struct {
	// Who is an account as account/NAME, or a user of the command line.
	Who string
	// From is where the request came from; empty: the command line.
	From string
}

func (a Actor) did(action, name, detail string) geoconfig.AuditRecord {
	if a.From != "" {
		if detail != "" {
			detail += ", "
		}
		detail += "from " + a.From
	}
	return geoconfig.AuditRecord{Who: a.Who, Action: action, Subject: accountRow(name), Detail: detail}
}

func accountRow(name string) string {
	return geoconfig.RecordKey{Kind: accountKind, Name: name}.Row().String()
}

// Add makes an account without a password. Errors: Invalid, Exists.
func (s *Service) Add(ctx context.Context, by Actor, name string, role Role) (Account, error) {
	const op fault.Op = "people.Add"
	switch {
	case !isName(name):
		return Account{}, fault.E(fault.Invalid, op, cut(name, maxNameBytes), "is no name of an account: small letters, digits, and ._@- after the first, 63 at most")
	case !role.IsValid():
		return Account{}, fault.Errorf(fault.Invalid, op, name, "%q is no role: viewer, operator or administrator", cut(string(role), maxNameBytes))
	}
	a, err := s.save(ctx, s.newAccount(name, role), nil, by.did("account.add", name, string(role)))
	if fault.Is(err, fault.Conflict) {
		return Account{}, fault.E(fault.Exists, op, name, "is an account already: choose another name")
	}
	return a.shown(), err
}

// newAccount makes an account. Its generation is above that of every earlier one
// of its name, so that sessions of a removed account do not come back.
func (s *Service) newAccount(name string, role Role) account {
	now := s.o.Wall().UnixNano()
	return account{name: name, Role: role, Generation: now, CreatedNS: now}
}

// save writes an account, and with it other rows.
func (s *Service) save(ctx context.Context, a account, more *geoconfig.Batch, act geoconfig.AuditRecord) (account, error) {
	var b geoconfig.Batch
	if more != nil {
		b = *more
	}
	r, err := a.record()
	if err != nil {
		return a, err
	}
	b.Records = append(b.Records, r)
	a.revision, err = s.apply(ctx, b, act)
	return a, err
}

// change reads an account, lets fn alter it, and writes it. Rev is the revision
// that the caller has seen, 0: any.
func (s *Service) change(ctx context.Context, op fault.Op, name string, rev ids.Revision, act geoconfig.AuditRecord, fn func(*account) error) (Account, error) {
	a, err := s.account(ctx, op, name)
	if err != nil {
		return Account{}, err
	}
	if rev != 0 && rev != a.revision {
		return Account{}, fault.Errorf(fault.Conflict, op, name, "the account is at revision %d, not %d: read it again", a.revision, rev)
	}
	was := a
	if err := fn(&a); err != nil {
		return Account{}, err
	}
	var more *geoconfig.Batch
	if was.isActiveAdmin() && !a.isActiveAdmin() {
		if more, err = s.witness(ctx, op, name); err != nil {
			return Account{}, err
		}
	}
	a, err = s.save(ctx, a, more, act)
	return a.shown(), err
}

// witness finds another administrator, and returns a batch that holds only while
// that one is unchanged. So two administrators cannot take each other's role at
// the same time.
func (s *Service) witness(ctx context.Context, op fault.Op, name string) (*geoconfig.Batch, error) {
	var found *geoconfig.Record
	err := s.each(ctx, accountKind, func(r geoconfig.Record) error {
		a, err := decodeAccount(r)
		if err == nil && found == nil && a.name != name && a.isActiveAdmin() {
			found = &r
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.E(fault.NotEmpty, op, name, "is the last administrator: make somebody else one first")
	}
	return &geoconfig.Batch{Records: []geoconfig.Record{*found}}, nil
}

// SetRole gives an account another role, which holds from its next request on.
// Errors: Invalid, NotFound, Conflict, NotEmpty (the last administrator).
func (s *Service) SetRole(ctx context.Context, by Actor, name string, role Role, rev ids.Revision) (Account, error) {
	const op fault.Op = "people.SetRole"
	if !role.IsValid() {
		return Account{}, fault.Errorf(fault.Invalid, op, cut(name, maxNameBytes), "%q is no role: viewer, operator or administrator", cut(string(role), maxNameBytes))
	}
	return s.change(ctx, op, name, rev, by.did("account.role", name, string(role)), func(a *account) error {
		a.Role = role
		return nil
	})
}

// SetDisabled ends an account's sessions and refuses new ones, or admits it
// again. Errors as of SetRole.
func (s *Service) SetDisabled(ctx context.Context, by Actor, name string, disabled bool, rev ids.Revision) (Account, error) {
	action := "account.enable"
	if disabled {
		action = "account.disable"
	}
	out, err := s.change(ctx, "people.SetDisabled", name, rev, by.did(action, name, ""), func(a *account) error {
		a.Disabled = disabled
		a.Generation++
		return nil
	})
	s.forgetAccount(name, err)
	return out, err
}

// SetPassword sets a password and ends the account's sessions. Errors: Invalid,
// NotFound, Conflict, Overloaded.
func (s *Service) SetPassword(ctx context.Context, by Actor, name, password string, rev ids.Revision) (Account, error) {
	if err := checkPassword(password); err != nil {
		return Account{}, err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return Account{}, err
	}
	out, err := s.change(ctx, "people.SetPassword", name, rev, by.did("account.password", name, ""), func(a *account) error {
		a.Hash = hash
		a.Generation++
		return nil
	})
	s.forgetAccount(name, err)
	return out, err
}

// Remove removes an account; its sessions and links end with it. Errors:
// NotFound, Conflict, NotEmpty (the last administrator).
func (s *Service) Remove(ctx context.Context, by Actor, name string, rev ids.Revision) error {
	const op fault.Op = "people.Remove"
	a, err := s.account(ctx, op, name)
	if err != nil {
		return err
	}
	if rev != 0 && rev != a.revision {
		return fault.Errorf(fault.Conflict, op, name, "the account is at revision %d, not %d: read it again", a.revision, rev)
	}
	b := &geoconfig.Batch{}
	if a.isActiveAdmin() {
		if b, err = s.witness(ctx, op, name); err != nil {
			return err
		}
	}
	r, err := a.record()
	if err != nil {
		return err
	}
	b.Remove = append(b.Remove, removal(r))
	if err := s.dropSubject(ctx, a, b); err != nil {
		return err
	}
	_, err = s.apply(ctx, *b, by.did("account.remove", name, ""))
	s.forgetAccount(name, err)
	return err
}

// subjectKey names the record that says whose a subject of a provider is.
func subjectKey(issuer, subject string) geoconfig.RecordKey {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return geoconfig.RecordKey{Kind: subjectKind, Name: hex.EncodeToString(sum[:])}
}

// dropSubject has a batch remove what says whose the account's subject is.
func (s *Service) dropSubject(ctx context.Context, a account, b *geoconfig.Batch) error {
	if a.Subject == "" {
		return nil
	}
	key := subjectKey(a.Issuer, a.Subject)
	found, err := s.find(ctx, key)
	if r, ok := found[key]; ok && err == nil {
		b.Remove = append(b.Remove, removal(r))
	}
	return err
}
