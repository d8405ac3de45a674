package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/clients/bootstrap"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/cockroach"
	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/founding"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/join"
)

type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Prepare this machine as the first of a new cluster."`
	Token  clusterTokenCmd  `cmd:"" help:"Make a token with which one machine joins as a node."`
	Tokens clusterTokensCmd `cmd:"" help:"List the tokens that were not used yet."`
	Unit   clusterUnitCmd   `cmd:"" help:"Print or write the systemd unit of a node or of geo-config."`
}

type clusterInitCmd struct {
	Site     string `required:"" help:"Name of the site where this machine stands."`
	Address  string `required:"" help:"IP address at which the other machines reach this one."`
	Etc      string `default:"/etc/cartwheel" type:"path" help:"Directory for configuration and keys."`
	Data     string `default:"/var/lib/cartwheel" type:"path" help:"Directory for data."`
	NodePort int    `default:"7400" help:"TCP port of the node."`
	GeoPort  int    `default:"7300" help:"TCP port of geo-config."`
	Name     string `default:"admin" help:"Name of the first user, an administrator."`

	databaseFlags `embed:""`
	PrimaryRegion string `help:"Region of a CockroachDB where changes are ordered, as for geo-config init." placeholder:"REGION"`
}

// Help shows how it is called.
func (clusterInitCmd) Help() string {
	return help(`cartwheel cluster init --site tokyo --address 192.0.2.11

It makes keys and configuration files, and starts nothing. With --database or --database-file the configuration goes into that database, whose tables it makes. The key of the first user may do everything, as any uid: keep it safe.`)
}

// Run makes the files.
func (c clusterInitCmd) Run(e *env) error {
	f := bootstrap.Founding{Etc: c.Etc, Data: c.Data, Site: ids.Site(c.Site), Address: c.Address,
		NodePort: c.NodePort, GeoPort: c.GeoPort, Admin: ids.User(c.Name)}
	made, err := c.found(e, f)
	if err != nil {
		return err
	}
	return e.print(made, func(w io.Writer) {
		fmt.Fprintf(w, "This machine is the first of cluster %s.\n\nStart it:\n", made.Cluster)
		words := append([]string{"--data", made.GeoConfigData, "--listen", made.GeoConfigListen}, made.GeoConfigDatabase...)
		fmt.Fprintf(w, "  cartwheeld geo-config %s\n", strings.Join(words, " "))
		fmt.Fprintf(w, "  cartwheeld node --config %s\n\n", made.NodeConfig)
		fmt.Fprintf(w, "Then, for each further machine:\n  cartwheel cluster token SITE --admin %s\n\n", made.AdminFile)
		fmt.Fprintf(w, "Clients reach the cluster by %s, with the key of a user.\n", made.Contact)
	})
}

// found makes the files, and fills the database where one is named.
func (c clusterInitCmd) found(e *env, f bootstrap.Founding) (bootstrap.Founded, error) {
	if c.Database == "" && c.DatabaseFile == "" {
		return bootstrap.Found(f, time.Now())
	}
	o, err := c.options(e)
	if err != nil {
		return bootstrap.Founded{}, err
	}
	store, err := emptyDatabase(e.ctx, o, c.PrimaryRegion)
	if err != nil {
		return bootstrap.Founded{}, err
	}
	defer store.Close()
	f.Database = []string{"--database-file", c.DatabaseFile}
	if c.DatabaseFile == "" {
		f.Database = []string{"--database", c.Database}
	}
	made, err := bootstrap.Found(f, time.Now())
	if err != nil {
		return made, err
	}
	// The server would do this, too; here a second founding is found out.
	rows, err := founding.Load(made.Rows(), time.Now())
	if err != nil {
		return made, err
	}
	cluster, err := founding.Found(e.ctx, store, rows)
	if err == nil && cluster.ID != made.Cluster {
		err = foundedAlready(cluster.ID)
	}
	return made, err
}

// emptyDatabase makes the tables in a database, and opens it. A database that holds
// a cluster is refused.
func emptyDatabase(ctx context.Context, o database.Options, primary string) (*cockroach.Store, error) {
	if _, err := migrate(ctx, o, primary); err != nil {
		return nil, err
	}
	store, err := cockroach.Open(ctx, cockroach.Options{Options: o})
	if err != nil {
		return nil, err
	}
	rows, err := store.Read(ctx, geoconfig.Query{})
	if err == nil && rows.Cluster != nil {
		err = foundedAlready(rows.Cluster.ID)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func foundedAlready(id ids.Cluster) error {
	return fault.Errorf(fault.Exists, "command.found", "the database", "holds cluster %s already: name another database, or add this machine to that cluster with a token", id)
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
