package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

type userCmd struct {
	Ls     userLsCmd     `cmd:"" help:"List the users."`
	Add    userAddCmd    `cmd:"" help:"Add a user's key."`
	Role   userRoleCmd   `cmd:"" help:"Make a user an administrator, or an administrator a user."`
	Revoke userRevokeCmd `cmd:"" help:"Remove a user, or a token: connections with its key end within seconds."`
}

type userLsCmd struct{ adminFlags }

// Help shows how it is called.
func (userLsCmd) Help() string { return help("cartwheel user ls") }

// Run lists the rows of users, without tokens.
func (c userLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Users: true})
		if err != nil {
			return err
		}
		out := []geoconfig.User{}
		for _, u := range rows.Users {
			if u.Join == nil {
				out = append(out, u)
			}
		}
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "USER\tACTS AS\tROLE\tKEY")
			for _, u := range out {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", u.Name, actsAs(u), role(u), u.Key)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

func actsAs(u geoconfig.User) string {
	if u.TrustedHost {
		return "anybody (trusted host)"
	}
	return fmt.Sprintf("uid %d, gids %s", u.UID, strings.Trim(fmt.Sprint(u.GIDs), "[]"))
}

func role(u geoconfig.User) string {
	if u.Admin {
		return "administrator"
	}
	return "user"
}

type userAddCmd struct {
	adminFlags
	Name        string   `arg:"" help:"The user's name."`
	Key         string   `required:"" help:"Identity of the user's key, as \"cartwheel key\" prints it."`
	UID         uint32   `name:"uid" help:"The uid that it acts as."`
	GID         []uint32 `name:"gid" help:"The groups that it acts with, the first one for new files; may be repeated."`
	TrustedHost bool     `help:"The key is that of a machine whose root is trusted: it acts as any uid."`
	Role        string   `default:"user" enum:"user,administrator" help:"user or administrator."`
}

// Help shows how it is called.
func (userAddCmd) Help() string {
	return help("cartwheel user add ann --key 12D3KooWG8VR... --uid 1000 --gid 1000")
}

// Run adds the row.
func (c userAddCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	u := geoconfig.User{Name: ids.User(c.Name), Key: c.Key, UID: c.UID, GIDs: c.GID, TrustedHost: c.TrustedHost, Admin: c.Role == "administrator"}
	if wrong := u.Check(); wrong != "" {
		return fault.E(fault.Usage, op, c.Name, wrong)
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Users: true})
		if err != nil {
			return err
		}
		for _, x := range rows.Users {
			if x.Key == u.Key {
				return fault.Errorf(fault.Exists, op, c.Key, "is the key of user %s already", x.Name)
			}
		}
		err = a.change(ctx, geoconfig.Batch{Users: []geoconfig.User{u}}, "user.add", u.RowKey(), actsAs(u)+", "+role(u))
		if fault.Is(err, fault.Conflict) {
			return fault.E(fault.Exists, op, c.Name, "is a user already; choose another name, or revoke that one first")
		}
		if err != nil {
			return err
		}
		return e.done(u, "user %s was added: %s, %s", u.Name, actsAs(u), role(u))
	})
}

type userRoleCmd struct {
	adminFlags
	Name string `arg:"" help:"The user's name."`
	Role string `arg:"" enum:"user,administrator" help:"user or administrator."`
}

// Help shows how it is called.
func (userRoleCmd) Help() string { return help("cartwheel user role ann administrator") }

// Run changes the row.
func (c userRoleCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		u, others, err := a.user(ctx, c.Name)
		if err != nil {
			return err
		}
		u.Admin = c.Role == "administrator"
		if !u.Admin && others == 0 {
			return fault.E(fault.NotEmpty, op, c.Name, "is the last administrator: make somebody else one first")
		}
		if err := a.change(ctx, geoconfig.Batch{Users: []geoconfig.User{u}}, "user.role", u.RowKey(), role(u)); err != nil {
			return err
		}
		return e.done(u, "user %s is %s now", u.Name, role(u))
	})
}

type userRevokeCmd struct {
	adminFlags
	Name string `arg:"" help:"The name of the user, or of the token."`
}

// Help shows how it is called.
func (userRevokeCmd) Help() string { return help("cartwheel user revoke ann") }

// Run removes the row.
func (c userRevokeCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		u, others, err := a.user(ctx, c.Name)
		if err != nil {
			return err
		}
		if u.Admin && others == 0 {
			return fault.E(fault.NotEmpty, op, c.Name, "is the last administrator: make somebody else one first")
		}
		b := geoconfig.Batch{Remove: []geoconfig.Removal{{Key: u.RowKey(), Revision: u.Revision}}}
		if err := a.change(ctx, b, "user.revoke", u.RowKey(), ""); err != nil {
			return err
		}
		return e.done(u, "%s was revoked", u.Name)
	})
}

// user returns a user, or a token, and how many administrators there are beside
// it.
func (a *administration) user(ctx context.Context, name string) (u geoconfig.User, others int, err error) {
	rows, err := a.Read(ctx, geoconfig.Query{Users: true})
	if err != nil {
		return u, 0, err
	}
	found := false
	for _, x := range rows.Users {
		switch {
		case string(x.Name) == name:
			u, found = x, true
		case x.Admin:
			others++
		}
	}
	if !found {
		return u, 0, fault.E(fault.NotFound, "command.user", name, "is no user and no token; `cartwheel user ls` and `cartwheel cluster tokens` list them")
	}
	return u, others, nil
}

type auditCmd struct {
	adminFlags
	Limit int `default:"50" help:"How many records, at most 1000; the newest come first."`
}

// Help shows how it is called.
func (auditCmd) Help() string { return help("cartwheel audit --limit 20") }

// Run lists the newest records.
func (c auditCmd) Run(e *env) error {
	if c.Limit < 1 || c.Limit > geoconfig.MaxBatchRows {
		return fault.Errorf(fault.Usage, "command.audit", "--limit", "is %d; between 1 and %d", c.Limit, geoconfig.MaxBatchRows)
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Audit: c.Limit})
		if err != nil {
			return err
		}
		if rows.Audit == nil {
			rows.Audit = []geoconfig.AuditRecord{}
		}
		return e.print(rows.Audit, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "NO\tWHEN\tWHO\tACTION\tSUBJECT\tDETAIL")
			for _, r := range rows.Audit {
				fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", r.Number, time.Unix(0, r.AtNS).Format(time.DateTime), r.Who, r.Action, r.Subject, r.Detail)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}
