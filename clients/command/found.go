package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/join"
)

type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Prepare this machine as the first of a new cluster."`
	Token  clusterTokenCmd  `cmd:"" help:"Make a token with which one machine joins as a node."`
	Tokens clusterTokensCmd `cmd:"" help:"List the tokens that were not used yet."`
}

type clusterInitCmd struct {
	Site     string `required:"" help:"Name of the site where this machine stands."`
	Address  string `required:"" help:"IP address at which the other machines reach this one."`
	Etc      string `default:"/etc/cartwheel" type:"path" help:"Directory for configuration and keys."`
	Data     string `default:"/var/lib/cartwheel" type:"path" help:"Directory for data."`
	NodePort int    `default:"7400" help:"TCP port of the node."`
	GeoPort  int    `default:"7300" help:"TCP port of geo-config."`
	Name     string `default:"admin" help:"Name of the first user, an administrator."`
}

// Help shows how it is called.
func (clusterInitCmd) Help() string {
	return help(`cartwheel cluster init --site tokyo --address 192.0.2.11

It makes keys and configuration files, and starts nothing. The key of the first user may do everything, as any uid: keep it safe.`)
}

// Run makes the files.
func (c clusterInitCmd) Run(e *env) error {
	made, err := bootstrap.Found(bootstrap.Founding{Etc: c.Etc, Data: c.Data, Site: ids.Site(c.Site), Address: c.Address,
		NodePort: c.NodePort, GeoPort: c.GeoPort, Admin: ids.User(c.Name)}, time.Now())
	if err != nil {
		return err
	}
	return e.print(made, func(w io.Writer) {
		fmt.Fprintf(w, "This machine is the first of cluster %s.\n\nStart it:\n", made.Cluster)
		fmt.Fprintf(w, "  cartwheeld geo-config --data %s --listen %s\n", made.GeoConfigData, made.GeoConfigListen)
		fmt.Fprintf(w, "  cartwheeld node --config %s\n\n", made.NodeConfig)
		fmt.Fprintf(w, "Then, for each further machine:\n  cartwheel cluster token SITE --admin %s\n\n", made.AdminFile)
		fmt.Fprintf(w, "Clients reach the cluster by %s, with the key of a user.\n", made.Contact)
	})
}

type clusterTokenCmd struct {
	adminFlags
	Site    string        `arg:"" help:"Site of the new node; a new name makes a new site."`
	Expires time.Duration `default:"1h" help:"How long the token is good for."`
}

// Help shows how it is called.
func (clusterTokenCmd) Help() string {
	return help(`cartwheel cluster token boston --expires 30m

The token adds one node, once. Whoever has it may join: send it as you would send a password.`)
}

// tokenView is what cluster token prints.
type tokenView struct {
	Token   string    `json:"token,omitempty"`
	Name    ids.User  `json:"name"`
	Site    ids.Site  `json:"site"`
	Expires time.Time `json:"expires"`
}

// Run makes the token.
func (c clusterTokenCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		t, err := join.Make(ctx, a, a.order(), a.file.GeoConfig, ids.Site(c.Site), c.Expires)
		if err != nil {
			return err
		}
		v := tokenView{t.String(), t.Name, t.Site, time.Unix(0, t.ExpiresNS)}
		return e.print(v, func(w io.Writer) {
			fmt.Fprintf(w, "On the new machine, within %v:\n\n  cartwheeld join %s --address ITS-IP\n", c.Expires, v.Token)
		})
	})
}

type clusterTokensCmd struct{ adminFlags }

// Help shows how it is called.
func (clusterTokensCmd) Help() string { return help("cartwheel cluster tokens") }

// Run lists them.
func (c clusterTokensCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Users: true})
		if err != nil {
			return err
		}
		out := []tokenView{}
		for _, u := range rows.Users {
			if u.Join != nil {
				out = append(out, tokenView{Name: u.Name, Site: u.Join.Site, Expires: time.Unix(0, u.Join.ExpiresNS)})
			}
		}
		return e.print(out, func(w io.Writer) {
			if len(out) == 0 {
				fmt.Fprintln(w, "No token waits to be used; `cartwheel cluster token` makes one.")
				return
			}
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "TOKEN\tSITE\tEXPIRES")
			for _, v := range out {
				fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, v.Site, expiry(v.Expires))
			}
			_ = t.Flush() // whoever reads it has gone
			fmt.Fprintln(w, "`cartwheel user revoke TOKEN` takes one back.")
		})
	})
}

// expiry says when something ends, for people.
func expiry(at time.Time) string {
	left := time.Until(at)
	if left <= 0 {
		return "expired " + ago(-left) + " ago"
	}
	return "in " + ago(left)
}
