package command

import (
	"context"
	"fmt"
	"io"
	gslices "slices"
	"strconv"
	"strings"
	"text/tabwriter"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/policy"
	"cartwheel.dev/node/whatif"
)

type policyCmd struct {
	Ls  policyLsCmd  `cmd:"" help:"List the slices with what they must satisfy, and whether they do."`
	Set policySetCmd `cmd:"" help:"Give slices another policy, which the nodes then follow."`
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
	rateFlag
	Slices string  `arg:"" help:"The slices' numbers, such as 3 or 1,4-9; or all."`
	Level  *int    `help:"How many copies each has."`
	Sites  *int    `help:"At how many sites they are; 0: as many as there are."`
	Home   *string `help:"The site where they are led."`
	DryRun bool    `help:"Only say what would be copied."`
}

// Help shows how it is called.
func (policySetCmd) Help() string {
	return help(`cartwheel policy set 1 --level 3 --home tokyo

The nodes make copies first, and let surplus ones go then. ` + "`cartwheel status --wait`" + ` waits until they have.`)
}

// Run changes the rows. All of them are checked before one is changed.
func (c policySetCmd) Run(e *env) error {
	const op fault.Op = "command.Run"
	if c.Level == nil && c.Sites == nil && c.Home == nil {
		return fault.E(fault.Usage, op, "policy set", "changes nothing: name --level, --sites or --home")
	}
	wanted, err := parseSlices(c.Slices)
	if err != nil {
		return err
	}
	change := policy.Change{Level: c.Level, Sites: c.Sites}
	if c.Home != nil {
		home := ids.Site(*c.Home)
		change.Home = &home
	}
	var state whatif.State
	if c.DryRun {
		state = e.sizes()
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		if err := a.readState(ctx, &state); err != nil {
			return err
		}
		rows, err := wanted.of(state.Slices)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Policy = change.Of(row.Policy)
			if err := policy.Check(row.Policy, rowsOf(state.Nodes)); err != nil {
				return fault.Wrap(fault.Invalid, op, fmt.Sprint("slice ", row.ID), err)
			}
		}
		if c.DryRun {
			p, err := c.previewOf(state)
			if err != nil {
				return err
			}
			return e.print(p, p.text)
		}
		return c.set(ctx, e, a, rows, change)
	})
}

// set writes the policies.
func (c policySetCmd) set(ctx context.Context, e *env, a *administration, rows []*whatif.Slice, change policy.Change) error {
	changed := []geoconfig.SliceRow{}
	for _, row := range rows {
		done, err := policy.Set(ctx, a, a.order(), row.ID, change)
		if err != nil {
			return fault.Wrap(fault.Other, "command.set", fmt.Sprintf("slice %d, after %d others were changed", row.ID, len(changed)), err)
		}
		changed = append(changed, done)
	}
	if len(changed) == 1 {
		row := changed[0]
		return e.done(row, "slice %d is to have %d copies, at home at %s; `cartwheel policy ls` shows how far it is", row.ID, row.Policy.Level, row.Policy.Home)
	}
	return e.done(changed, "%d slices have a new policy; `cartwheel policy ls` shows how far they are", len(changed))
}

// sliceList is which slices an order is for.
type sliceList struct {
	all    bool
	ranges [][2]ids.Slice
}

// parseSlices reads "all", or numbers and ranges with commas between them.
func parseSlices(text string) (sliceList, error) {
	if text == "all" {
		return sliceList{all: true}, nil
	}
	var out sliceList
	for _, part := range strings.Split(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, ids.SliceBits)
		b, err2 := strconv.ParseUint(last, 10, ids.SliceBits)
		if err1 != nil || err2 != nil || a == 0 || b < a {
			return out, fault.E(fault.Usage, "command.parseSlices", text, "is not a number of a slice, several such as 1,4-9, or all; `cartwheel policy ls` lists them")
		}
		out.ranges = append(out.ranges, [2]ids.Slice{ids.Slice(a), ids.Slice(b)})
	}
	return out, nil
}

// of picks the rows. Each number by itself must be there; ranges may have gaps.
func (l sliceList) of(rows []whatif.Slice) ([]*whatif.Slice, error) {
	var out []*whatif.Slice
	in := func(id ids.Slice) bool {
		return l.all || gslices.ContainsFunc(l.ranges, func(r [2]ids.Slice) bool { return r[0] <= id && id <= r[1] })
	}
	for i := range rows {
		if in(rows[i].ID) {
			out = append(out, &rows[i])
		}
	}
	for _, r := range l.ranges {
		if !gslices.ContainsFunc(out, func(s *whatif.Slice) bool { return r[0] <= s.ID && s.ID <= r[1] }) {
			return nil, fault.E(fault.NotFound, "command.of", fmt.Sprint("slice ", r[0]), "is not there; `cartwheel policy ls` lists the slices")
		}
	}
	return out, nil
}
