package people

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// Role says what an account may do; each may do what those before it may.
type Role string

// The roles.
const (
	Viewer        Role = "viewer"
	Operator      Role = "operator"
	Administrator Role = "administrator"
)

func (r Role) rank() int {
	return slices.Index([]Role{Viewer, Operator, Administrator}, r)
}

// IsValid reports whether there is such a role.
func (r Role) IsValid() bool { return r.rank() >= 0 }

// Covers reports whether r may do all that other may. An unknown role covers
// nothing and is covered by none.
func (r Role) Covers(other Role) bool {
	return r.IsValid() && other.IsValid() && r.rank() >= other.rank()
}

// Account is what may be shown of an account.
type Account struct {
	Name     string
	Role     Role
	Disabled bool
	// HasPassword is false for one that signs in by links or OIDC only.
	HasPassword bool
	// Issuer and Subject name the account at an OIDC provider; empty: none.
	Issuer, Subject string
	Created         time.Time
	Revision        ids.Revision
}

// account is the body of an account's record.
type account struct {
	Role     Role   `json:"role"`
	Disabled bool   `json:"disabled,omitempty"`
	Hash     string `json:"hash,omitempty"` // PHC form
	Issuer   string `json:"issuer,omitempty"`
	Subject  string `json:"subject,omitempty"`
	// Generation is that of the account's sessions. All older ones have ended.
	Generation int64 `json:"generation"`
	CreatedNS  int64 `json:"created_ns"`

	name     string
	revision ids.Revision
}

func (a account) shown() Account {
	return Account{
		Name: a.name, Role: a.Role, Disabled: a.Disabled, HasPassword: a.Hash != "", Issuer: a.Issuer, Subject: a.Subject,
		Created: time.Unix(0, a.CreatedNS), Revision: a.revision,
	}
}

func (a account) record() (geoconfig.Record, error) {
	return encode(accountKind, a.name, a, time.Time{}, a.revision)
}

// isActiveAdmin reports whether the account can administer the cluster.
func (a account) isActiveAdmin() bool { return a.Role == Administrator && !a.Disabled }

func decodeAccount(r geoconfig.Record) (account, error) {
	a := account{name: r.Name, revision: r.Revision}
	err := decode(r, &a)
	return a, err
}

// maxNameBytes bounds an account's name.
const maxNameBytes = 63

// isName reports whether an account may have the name: it stands in URLs and
// records as it is.
func isName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte("_.@-", c) < 0) {
			return false
		}
	}
	return name != "" && len(name) <= maxNameBytes
}

// account reads one account.
func (s *Service) account(ctx context.Context, op fault.Op, name string) (account, error) {
	key := geoconfig.RecordKey{Kind: accountKind, Name: name}
	if isName(name) {
		found, err := s.find(ctx, key)
		if err != nil {
			return account{}, err
		}
		if r, ok := found[key]; ok {
			return decodeAccount(r)
		}
	}
	return account{}, fault.E(fault.NotFound, op, cut(name, maxNameBytes), "there is no such account: cartwheel account ls lists them")
}

// Account returns one account. Error: NotFound.
func (s *Service) Account(ctx context.Context, name string) (Account, error) {
	a, err := s.account(ctx, "people.Account", name)
	if err != nil {
		return Account{}, err
	}
	return a.shown(), nil
}

// Accounts returns all accounts by name.
func (s *Service) Accounts(ctx context.Context) ([]Account, error) {
	out := []Account{}
	err := s.each(ctx, accountKind, func(r geoconfig.Record) error {
		a, err := decodeAccount(r)
		out = append(out, a.shown())
		return err
	})
	slices.SortFunc(out, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// cut shortens text that a stranger sent.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "?")
}
