package changes

import (
	"context"
	"fmt"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// ActsAs says as whom a user's key acts, for people.
func ActsAs(u geoconfig.User) string {
	if u.TrustedHost {
		return "anybody (trusted host)"
	}
	return fmt.Sprintf("uid %d, gids %s", u.UID, strings.Trim(fmt.Sprint(u.GIDs), "[]"))
}

// Role names what a user may order: administrator or user.
func Role(u geoconfig.User) string {
	if u.Admin {
		return "administrator"
	}
	return "user"
}

// AddUser adds a user's key. Errors: Usage where the row makes no sense, Exists
// where the name or the key is taken, and the store's.
func AddUser(ctx context.Context, store geoconfig.Store, o Order, u geoconfig.User) error {
	const op fault.Op = "changes.AddUser"
	if wrong := u.Check(); wrong != "" {
		return fault.E(fault.Usage, op, string(u.Name), wrong)
	}
	rows, err := store.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		return err
	}
	for _, x := range rows.Users {
		if x.Key == u.Key && x.Name != u.Name {
			return fault.Errorf(fault.Exists, op, u.Key, "is the key of user %s already", x.Name)
		}
	}
	u.Revision = 0
	err = o.apply(ctx, store, geoconfig.Batch{Users: []geoconfig.User{u}}, "user.add", u.RowKey(), ActsAs(u)+", "+Role(u))
	if fault.Is(err, fault.Conflict) {
		return fault.E(fault.Exists, op, string(u.Name), "is a user already; choose another name, or revoke that one first")
	}
	return err
}

// SetRole makes a user an administrator, or an administrator a user, and returns
// the row. Errors: NotFound, NotEmpty for the last administrator, Conflict, and the
// store's.
func SetRole(ctx context.Context, store geoconfig.Store, o Order, name ids.User, admin bool) (geoconfig.User, error) {
	u, others, err := user(ctx, store, name)
	if err != nil {
		return u, err
	}
	u.Admin = admin
	if !u.Admin && others == 0 {
		return u, last("changes.SetRole", name)
	}
	u.Revision = o.match(u.Revision)
	return u, o.apply(ctx, store, geoconfig.Batch{Users: []geoconfig.User{u}}, "user.role", u.RowKey(), Role(u))
}

// Revoke removes a user, or a token, and returns its last row. Connections with its
// key end within seconds. Errors: NotFound, NotEmpty for the last administrator,
// Conflict, and the store's.
func Revoke(ctx context.Context, store geoconfig.Store, o Order, name ids.User) (geoconfig.User, error) {
	u, others, err := user(ctx, store, name)
	if err != nil {
		u.Name = name
		return u, o.again(ctx, store, u.RowKey(), err)
	}
	if u.Admin && others == 0 {
		return u, last("changes.Revoke", name)
	}
	return u, o.remove(ctx, store, u.RowKey(), u.Revision, "user.revoke", "")
}

func last(op fault.Op, name ids.User) error {
	return fault.E(fault.NotEmpty, op, string(name), "is the last administrator: make somebody else one first")
}

// user returns a user, or a token, and how many administrators there are beside
// it.
func user(ctx context.Context, store geoconfig.Store, name ids.User) (u geoconfig.User, others int, err error) {
	rows, err := store.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		return u, 0, err
	}
	found := false
	for _, x := range rows.Users {
		switch {
		case x.Name == name:
			u, found = x, true
		case x.Admin:
			others++
		}
	}
	if !found {
		return u, 0, fault.E(fault.NotFound, "changes.user", string(name), "is no user and no token; `cartwheel user ls` and `cartwheel cluster tokens` list them")
	}
	return u, others, nil
}
