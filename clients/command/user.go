package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/wire"
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
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", u.Name, changes.ActsAs(u), changes.Role(u), u.Key)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

type userAddCmd struct {
	adminFlags
	Name        string   `arg:"" help:"The user's name."`
	Key         string   `required:"" help:"Identity of the user's key, as \"cartwheel key\" prints it, or the line of an ssh-ed25519 public key."`
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
	key, err := wire.UserKeyID(c.Key)
	if err != nil { // before anything is asked
		return err
	}
	u := geoconfig.User{Name: ids.User(c.Name), Key: key, UID: c.UID, GIDs: c.GID, TrustedHost: c.TrustedHost, Admin: c.Role == "administrator"}
	if wrong := u.Check(); wrong != "" {
		return fault.E(fault.Usage, op, c.Name, wrong)
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		if err := changes.AddUser(ctx, a, a.order(), u); err != nil {
			return err
		}
		return e.done(u, "user %s was added: %s, %s", u.Name, changes.ActsAs(u), changes.Role(u))
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
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		u, err := changes.SetRole(ctx, a, a.order(), ids.User(c.Name), c.Role == "administrator")
		if err != nil {
			return err
		}
		return e.done(u, "user %s is %s now", u.Name, changes.Role(u))
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
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		u, err := changes.Revoke(ctx, a, a.order(), ids.User(c.Name))
		if err != nil {
			return err
		}
		return e.done(u, "%s was revoked", u.Name)
	})
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
