package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/drain"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/whatif"
)

type siteCmd struct {
	Ls      siteLsCmd      `cmd:"" help:"List the sites with their nodes."`
	Add     siteAddCmd     `cmd:"" help:"Add a site."`
	Set     siteSetCmd     `cmd:"" help:"Say where a site is."`
	Remove  siteRemoveCmd  `cmd:"" help:"Remove a site at which no node stands."`
	Drain   siteDrainCmd   `cmd:"" help:"Move all slices away from a site's nodes."`
	Undrain siteUndrainCmd `cmd:"" help:"Let a site's nodes have slices again."`
}

type siteLsCmd struct{ adminFlags }

// Help shows how it is called.
func (siteLsCmd) Help() string { return help("cartwheel site ls") }

// siteView is a site in the list.
type siteView struct {
	Name     ids.Site   `json:"name"`
	Location string     `json:"location,omitempty"`
	Nodes    []ids.Node `json:"nodes"`
}

// Run lists the rows.
func (c siteLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Sites: true, Nodes: true})
		if err != nil {
			return err
		}
		out := []siteView{}
		for _, s := range rows.Sites {
			v := siteView{Name: s.Name, Location: s.Location, Nodes: []ids.Node{}}
			for _, n := range rows.Nodes {
				if n.Site == s.Name {
					v.Nodes = append(v.Nodes, n.ID)
				}
			}
			out = append(out, v)
		}
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tNODES\tLOCATION")
			for _, v := range out {
				fmt.Fprintf(t, "%s\t%d\t%s\n", v.Name, len(v.Nodes), v.Location)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

type siteAddCmd struct {
	adminFlags
	Name     string `arg:"" help:"The site's name."`
	Location string `help:"Where it is, for people."`
}

// Help shows how it is called.
func (siteAddCmd) Help() string { return help("cartwheel site add oslo --location 'Oslo, Norway'") }

// Run adds the row.
func (c siteAddCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		s := geoconfig.Site{Name: ids.Site(c.Name), Location: c.Location}
		if err := changes.AddSite(ctx, a, a.order(), s); err != nil {
			return err
		}
		return e.done(s, "%s was added", c.Name)
	})
}

type siteSetCmd struct {
	adminFlags
	Name     string `arg:"" help:"The site's name."`
	Location string `required:"" help:"Where it is, for people."`
}

// Help shows how it is called.
func (siteSetCmd) Help() string { return help("cartwheel site set oslo --location 'Oslo, Norway'") }

// Run changes the row.
func (c siteSetCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		s, err := changes.SetSite(ctx, a, a.order(), ids.Site(c.Name), c.Location)
		if err != nil {
			return err
		}
		return e.done(s, "%s is at %s", c.Name, c.Location)
	})
}

type siteRemoveCmd struct {
	adminFlags
	Name string `arg:"" help:"The site's name."`
}

// Help shows how it is called.
func (siteRemoveCmd) Help() string { return help("cartwheel site remove oslo") }

// Run removes the row.
func (c siteRemoveCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		s, err := changes.RemoveSite(ctx, a, a.order(), ids.Site(c.Name))
		if err != nil {
			return err
		}
		return e.done(s, "%s was removed", c.Name)
	})
}

type nodeCmd struct {
	Ls      nodeLsCmd      `cmd:"" help:"List the nodes of the roster."`
	Remove  nodeRemoveCmd  `cmd:"" help:"Remove a node that is a member of no slice."`
	Drain   nodeDrainCmd   `cmd:"" help:"Move all slices away from a node."`
	Undrain nodeUndrainCmd `cmd:"" help:"Let a node have slices again."`
}

type nodeLsCmd struct{ adminFlags }

// Help shows how it is called.
func (nodeLsCmd) Help() string { return help("cartwheel node ls") }

// Run lists the rows.
func (c nodeLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		var s whatif.State
		if err := a.readState(ctx, &s); err != nil {
			return err
		}
		out := []nodeRow{}
		for _, n := range s.Nodes {
			out = append(out, nodeRow{n.Node, drain.Remains(s.Slices, []ids.Node{n.ID}).Slices})
		}
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tNODE\tADDRESS\tSLICES\tUSED\tOF\tVERSION")
			for _, n := range out {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Site, n.ID, n.address(), n.held(), size(n.UsedBytes), size(n.CapacityBytes), n.version())
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

// nodeRow is a node in the list, with how many slices have a member there.
type nodeRow struct {
	geoconfig.Node
	Slices int `json:"slices"`
}

func (n nodeRow) address() string {
	if len(n.Addresses) == 0 {
		return "-"
	}
	return n.Addresses[0]
}

func (n nodeRow) version() string {
	if n.Incarnation == 0 {
		return "never started"
	}
	return n.Version
}

func (n nodeRow) held() string {
	switch {
	case !n.Draining:
		return fmt.Sprint(n.Slices)
	case n.Slices == 0:
		return "0, drained"
	}
	return fmt.Sprint(n.Slices, ", is drained")
}

type nodeRemoveCmd struct {
	adminFlags
	Node string `arg:"" help:"The node's ID, or the end of it."`
}

// Help shows how it is called.
func (nodeRemoveCmd) Help() string { return help("cartwheel node remove TMFqeQKx") }

// Run removes the row. What the node stores stays on its disk.
func (c nodeRemoveCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Nodes: true})
		if err != nil {
			return err
		}
		n, err := oneNode(rows.Nodes, c.Node)
		if err != nil {
			return err
		}
		if err := changes.RemoveNode(ctx, a, a.order(), n); err != nil {
			return err
		}
		return e.done(n, "node %s at %s was removed", n.ID, n.Site)
	})
}
