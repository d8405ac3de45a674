package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people"
)

type accountCmd struct {
	Ls       accountLsCmd       `cmd:"" help:"List the accounts of the console."`
	Add      accountAddCmd      `cmd:"" help:"Add an account of the console."`
	Role     accountRoleCmd     `cmd:"" help:"Give an account another role."`
	Disable  accountDisableCmd  `cmd:"" help:"End an account's sessions, and refuse new ones."`
	Enable   accountEnableCmd   `cmd:"" help:"Let a disabled account sign in again."`
	Password accountPasswordCmd `cmd:"" help:"Set an account's password, and end its sessions."`
	Remove   accountRemoveCmd   `cmd:"" help:"Remove an account, and end its sessions."`
}

// accountView is an account as JSON.
type accountView struct {
	Name      string      `json:"name"`
	Role      people.Role `json:"role"`
	Disabled  bool        `json:"disabled"`
	Password  bool        `json:"has_password"`
	Issuer    string      `json:"issuer,omitempty"`
	Subject   string      `json:"subject,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
}

func viewAccount(a people.Account) accountView {
	return accountView{a.Name, a.Role, a.Disabled, a.HasPassword, a.Issuer, a.Subject, a.Created.UTC()}
}

// signsIn says how an account signs in, for people.
func (v accountView) signsIn() string {
	switch {
	case v.Disabled:
		return "not: it is disabled"
	case v.Password && v.Subject != "":
		return "by password, by " + v.Issuer
	case v.Password:
		return "by password"
	case v.Subject != "":
		return "by " + v.Issuer
	}
	return "by a link (cartwheel console link " + v.Name + ")"
}

// withPeople runs what a command does with the people of the console.
func withPeople(e *env, f adminFlags, run func(context.Context, *people.Service, people.Actor) error) error {
	return administered(e, f, func(ctx context.Context, a *administration) error {
		return run(ctx, people.New(people.Options{Store: a}), people.Actor{Who: a.who})
	})
}

type accountLsCmd struct{ adminFlags }

// Help shows how it is called.
func (accountLsCmd) Help() string { return help("cartwheel account ls") }

// Run lists them.
func (c accountLsCmd) Run(e *env) error {
	return withPeople(e, c.adminFlags, func(ctx context.Context, s *people.Service, _ people.Actor) error {
		list, err := s.Accounts(ctx)
		if err != nil {
			return err
		}
		out := []accountView{}
		for _, a := range list {
			out = append(out, viewAccount(a))
		}
		return e.print(out, func(w io.Writer) {
			if len(out) == 0 {
				fmt.Fprintln(w, "There are no accounts yet; `cartwheel console link` makes the first one.")
				return
			}
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "ACCOUNT\tROLE\tSIGNS IN")
			for _, v := range out {
				fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, v.Role, v.signsIn())
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

type accountAddCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name: small letters, digits, and ._@- after the first."`
	Role string `default:"viewer" enum:"viewer,operator,administrator" help:"viewer, operator or administrator."`
}

// Help shows how it is called.
func (accountAddCmd) Help() string { return help("cartwheel account add ann --role operator") }

// Run adds the account.
func (c accountAddCmd) Run(e *env) error {
	return withPeople(e, c.adminFlags, func(ctx context.Context, s *people.Service, by people.Actor) error {
		a, err := s.Add(ctx, by, c.Name, people.Role(c.Role))
		if err != nil {
			return err
		}
		return e.done(viewAccount(a), "account %s was added as %s; it has no password yet: `cartwheel console link %s` signs it in", a.Name, a.Role, a.Name)
	})
}

type accountRoleCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name."`
	Role string `arg:"" enum:"viewer,operator,administrator" help:"viewer, operator or administrator."`
}

// Help shows how it is called.
func (accountRoleCmd) Help() string { return help("cartwheel account role ann viewer") }

// Run changes the role.
func (c accountRoleCmd) Run(e *env) error {
	return withPeople(e, c.adminFlags, func(ctx context.Context, s *people.Service, by people.Actor) error {
		a, err := s.SetRole(ctx, by, c.Name, people.Role(c.Role), 0)
		if err != nil {
			return err
		}
		return e.done(viewAccount(a), "account %s is %s now", a.Name, a.Role)
	})
}

type accountDisableCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name."`
}

// Help shows how it is called.
func (accountDisableCmd) Help() string { return help("cartwheel account disable ann") }

// Run disables the account.
func (c accountDisableCmd) Run(e *env) error {
	return setDisabled(e, c.adminFlags, c.Name, true, "account %s is disabled, and its sessions have ended")
}

type accountEnableCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name."`
}

// Help shows how it is called.
func (accountEnableCmd) Help() string { return help("cartwheel account enable ann") }

// Run enables the account.
func (c accountEnableCmd) Run(e *env) error {
	return setDisabled(e, c.adminFlags, c.Name, false, "account %s may sign in again")
}

func setDisabled(e *env, f adminFlags, name string, disabled bool, said string) error {
	return withPeople(e, f, func(ctx context.Context, s *people.Service, by people.Actor) error {
		a, err := s.SetDisabled(ctx, by, name, disabled, 0)
		if err != nil {
			return err
		}
		return e.done(viewAccount(a), said, a.Name)
	})
}

type accountPasswordCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name."`
	File string `type:"existingfile" placeholder:"FILE" help:"File whose first line is the password; without it the terminal asks."`
}

// Help shows how it is called.
func (accountPasswordCmd) Help() string {
	return help(`cartwheel account password ann --file ann.password

A password is never an argument: other users of the machine could read it. It has 12 characters at least; nothing else matters.`)
}

// Run sets the password.
func (c accountPasswordCmd) Run(e *env) error {
	password, err := newPassword(e, c.File)
	if err != nil {
		return err
	}
	return withPeople(e, c.adminFlags, func(ctx context.Context, s *people.Service, by people.Actor) error {
		a, err := s.SetPassword(ctx, by, c.Name, password, 0)
		if err != nil {
			return err
		}
		return e.done(viewAccount(a), "account %s has a new password, and its sessions have ended", a.Name)
	})
}

type accountRemoveCmd struct {
	adminFlags
	Name string `arg:"" help:"The account's name."`
}

// Help shows how it is called.
func (accountRemoveCmd) Help() string { return help("cartwheel account remove ann") }

// Run removes the account.
func (c accountRemoveCmd) Run(e *env) error {
	return withPeople(e, c.adminFlags, func(ctx context.Context, s *people.Service, by people.Actor) error {
		if err := s.Remove(ctx, by, c.Name, 0); err != nil {
			return err
		}
		return e.done(map[string]string{"name": c.Name}, "account %s was removed", c.Name)
	})
}

type consoleCmd struct {
	Link consoleLinkCmd `cmd:"" help:"Make a link that signs an account in to the console, once."`
}

type consoleLinkCmd struct {
	adminFlags
	Name    string        `arg:"" optional:"" help:"The account; in a cluster without accounts none: the link makes the first administrator."`
	Console string        `placeholder:"URL" help:"The console's address, such as https://console.example (default: the one in the administrator's file)."`
	Expires time.Duration `default:"15m" help:"How long the link is good for, at most 24h."`
}

// Help shows how it is called.
func (consoleLinkCmd) Help() string {
	return help(`cartwheel console link ann --console https://console.example

Whoever opens the link first is signed in: send it as you would send a password.`)
}

// linkView is what console link prints.
type linkView struct {
	URL       string    `json:"url"`
	Account   string    `json:"account"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Run makes the link.
func (c consoleLinkCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		console := c.Console
		if console == "" {
			console = a.file.Console
		}
		if err := checkConsole(console); err != nil {
			return err
		}
		s, by := people.New(people.Options{Store: a}), people.Actor{Who: a.who}
		v := linkView{Account: c.Name, ExpiresAt: time.Now().Add(c.Expires).UTC()}
		var token string
		var err error
		if c.Name == "" {
			v.Account = people.FirstAccount
			token, err = s.FirstLink(ctx, by, c.Expires)
			if fault.Is(err, fault.Exists) {
				return fault.E(fault.Usage, op, "NAME", "the cluster has accounts: name the one to sign in, as `cartwheel account ls` lists them")
			}
		} else {
			token, err = s.MakeLink(ctx, by, c.Name, c.Expires)
		}
		if err != nil {
			return err
		}
		v.URL = people.LinkURL(console, token)
		return e.print(v, func(w io.Writer) {
			fmt.Fprintf(w, "Open this once, within %v, to sign in as %s:\n\n  %s\n", c.Expires, v.Account, v.URL)
		})
	})
}
