package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/policy"
	"cartwheel.dev/node/whatif"
)

type policyCmd struct {
	Ls  policyLsCmd  `cmd:"" help:"List the slices with what they must satisfy, and whether they do."`
	Set policySetCmd `cmd:"" help:"Give a slice another policy, which the nodes then follow."`
}

type policyLsCmd struct{ adminFlags }

// Help shows how it is called.
func (policyLsCmd) Help() string { return help("cartwheel policy ls") }

// policyView is a slice's policy in the list.
type policyView struct {
	Slice  ids.Slice        `json:"slice"`
	Policy geoconfig.Policy `json:"policy"`
	// Copies are the normal members, at so many Sites; Active is where it is led.
	Copies int      `json:"copies"`
	Sites  int      `json:"sites"`
	Active ids.Site `json:"active"`
}

// Run lists the rows.
func (c policyLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		var s whatif.State
		if err := a.readState(ctx, &s); err != nil {
			return err
		}
		site := map[ids.Node]ids.Site{}
		for _, n := range s.Nodes {
			site[n.ID] = n.Site
		}
		out := []policyView{}
		for i := range s.Slices {
			row := &s.Slices[i].SliceRow
			at := map[ids.Site]bool{}
			for _, n := range row.Normals() {
				at[site[n]] = true
			}
			out = append(out, policyView{row.ID, row.Policy, len(row.Normals()), len(at), site[row.Active]})
		}
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "SLICE\tLEVEL\tSITES\tHOME\tMAY LAG\tCOPIES\tAT SITES\tACTIVE AT")
			for _, v := range out {
				sites := fmt.Sprint(v.Policy.Sites)
				if v.Policy.Sites == 0 {
					sites = "any"
				}
				lag := "no"
				if v.Policy.Coherence > 0 {
					lag = v.Policy.Coherence.String()
				}
				fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", v.Slice, v.Policy.Level, sites, v.Policy.Home, lag, v.Copies, v.Sites, v.Active)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

type policySetCmd struct {
	adminFlags
	Slice uint32  `arg:"" help:"The slice's number."`
	Level *int    `help:"How many copies it has."`
	Sites *int    `help:"At how many sites they are; 0: as many as there are."`
	Home  *string `help:"The site where it is led."`
}

// Help shows how it is called.
func (policySetCmd) Help() string {
	return help(`cartwheel policy set 1 --level 3 --home tokyo

The nodes make copies first, and let surplus ones go then.`)
}

// Run changes the row.
func (c policySetCmd) Run(e *env) error {
	if c.Level == nil && c.Sites == nil && c.Home == nil {
		return fault.E(fault.Usage, "command.Run", "policy set", "changes nothing: name --level, --sites or --home")
	}
	change := policy.Change{Level: c.Level, Sites: c.Sites}
	if c.Home != nil {
		home := ids.Site(*c.Home)
		change.Home = &home
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		row, err := policy.Set(ctx, a, a.order(), ids.Slice(c.Slice), change)
		if err != nil {
			return err
		}
		return e.done(row, "slice %d is to have %d copies, at home at %s; `cartwheel policy ls` shows how far it is", row.ID, row.Policy.Level, row.Policy.Home)
	})
}
