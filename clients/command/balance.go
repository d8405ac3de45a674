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
	"cartwheel.dev/node/balance"
	"cartwheel.dev/node/geo/changes"
	"cartwheel.dev/node/whatif"
)

type balanceCmd struct {
	Ls  balanceLsCmd  `cmd:"" help:"List the nodes with how full they are, and what they give away."`
	Set balanceSetCmd `cmd:"" help:"Change when a site's nodes give slices away, or preview what moves."`
}

type balanceLsCmd struct{ adminFlags }

// Help shows how it is called.
func (balanceLsCmd) Help() string { return help("cartwheel balance ls") }

// fillView is how full a node is, and what it does about it.
type fillView struct {
	Node     ids.Node `json:"node"`
	Site     ids.Site `json:"site"`
	Used     int64    `json:"used_bytes"`
	Capacity int64    `json:"capacity_bytes"`
	// Fill is what the node found: roomy, middling, high or full.
	Fill string `json:"fill"`
	geoconfig.Balance
	// Giving is what the node gives away now; nil: nothing.
	Giving *geoconfig.Giving `json:"giving,omitempty"`
}

// Run lists the rows.
func (c balanceLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Sites: true, Nodes: true})
		if err != nil {
			return err
		}
		marks := marksOf(rows.Sites)
		out := []fillView{}
		for _, n := range rows.Nodes {
			out = append(out, fillView{n.ID, n.Site, n.UsedBytes, n.CapacityBytes, n.Fill.String(), marks(n.Site), n.Giving})
		}
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tNODE\tUSED\tOF\tSHARE\tDISK\tGIVES\tNOW")
			for _, v := range out {
				share, now := "-", "-"
				if v.Capacity > 0 {
					share = fmt.Sprintf("%.0f%%", 100*float64(v.Used)/float64(v.Capacity))
				}
				if v.Giving != nil {
					now = fmt.Sprintf("slice %d to %s", v.Giving.Slice, short(v.Giving.To))
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Site, short(v.Node), size(v.Used), size(v.Capacity), share, v.Fill, changes.BalanceText(v.Balance), now)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

// marksOf returns what holds at each site.
func marksOf(sites []geoconfig.Site) func(ids.Site) geoconfig.Balance {
	by := map[ids.Site]geoconfig.Balance{}
	for _, s := range sites {
		by[s.Name] = s.Marks()
	}
	return func(site ids.Site) geoconfig.Balance {
		if b, ok := by[site]; ok {
			return b
		}
		return geoconfig.DefaultBalance()
	}
}

type balanceSetCmd struct {
	adminFlags
	Site   string  `arg:"" help:"The site's name, or all."`
	High   *int    `placeholder:"PERCENT" help:"Share of its disk above which a node gives slices away (85 at first)."`
	Low    *int    `placeholder:"PERCENT" help:"Share at which it stops, and above which a node takes none (75 at first)."`
	On     bool    `help:"Have the site's nodes give slices away."`
	Off    bool    `help:"Have them give none away; what is under way ends."`
	DryRun bool    `help:"Only say what would move, with these marks or those that hold."`
	Rate   float64 `placeholder:"MBIT" help:"Mbit/s of one copy, to tell with --dry-run how long it takes."`
}

// Help shows how it is called.
func (balanceSetCmd) Help() string {
	return help(`cartwheel balance set oslo --high 90 --low 80 --dry-run --rate 400

A node whose disk is above the high mark gives one slice after the other to nodes below the low mark, the coldest first, while clients read and write. Each slice keeps to its policy.`)
}

// change reads the options.
func (c balanceSetCmd) change() (changes.BalanceChange, error) {
	const op fault.Op = "command.change"
	out := changes.BalanceChange{High: c.High, Low: c.Low}
	switch {
	case c.On && c.Off:
		return out, fault.E(fault.Usage, op, "--on", "and --off cannot both be: give one")
	case c.On || c.Off:
		out.Off = &c.Off
	case c.High == nil && c.Low == nil && !c.DryRun:
		return out, fault.E(fault.Usage, op, "balance set", "changes nothing: name --high, --low, --on or --off, or --dry-run")
	}
	if c.Rate < 0 || c.Rate > 0 && !c.DryRun {
		return out, fault.E(fault.Usage, op, "--rate", "goes with --dry-run, and is above 0")
	}
	return out, nil
}

// Run changes the rows, or says what would move.
func (c balanceSetCmd) Run(e *env) error {
	change, err := c.change()
	if err != nil {
		return err
	}
	var state whatif.State
	if c.DryRun {
		state = e.sizes()
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Sites: true})
		if err != nil {
			return err
		}
		sites, err := c.chosen(rows.Sites, change)
		if err != nil {
			return err
		}
		if c.DryRun {
			if err := a.readState(ctx, &state); err != nil {
				return err
			}
			p := foreseeMoves(&state, marksOf(sites), c.Rate)
			return e.print(p, p.text)
		}
		changed := []marksView{}
		for _, s := range sites {
			if !c.names(s) {
				continue
			}
			b, err := changes.SetBalance(ctx, a, a.order(), s.Name, change)
			if err != nil {
				return err
			}
			changed = append(changed, marksView{s.Name, b})
		}
		return e.print(changed, func(w io.Writer) {
			for _, v := range changed {
				fmt.Fprintf(w, "%s: nodes give slices away: %s\n", v.Site, changes.BalanceText(v.Balance))
			}
		})
	})
}

// marksView is what holds at a site.
type marksView struct {
	Site ids.Site `json:"site"`
	geoconfig.Balance
}

// names reports whether the command is for a site.
func (c balanceSetCmd) names(s geoconfig.Site) bool {
	return c.Site == "all" || string(s.Name) == c.Site
}

// chosen returns the sites as they are with the change. Errors: NotFound, Invalid.
func (c balanceSetCmd) chosen(sites []geoconfig.Site, change changes.BalanceChange) ([]geoconfig.Site, error) {
	const op fault.Op = "command.chosen"
	found := false
	for i := range sites {
		s := &sites[i]
		if !c.names(*s) {
			continue
		}
		next := change.Of(s.Marks())
		if wrong := next.Check(); wrong != "" {
			return nil, fault.E(fault.Invalid, op, string(s.Name), wrong)
		}
		s.Balance, found = &next, true
	}
	if !found {
		return nil, fault.E(fault.NotFound, op, c.Site, "is no site; `cartwheel site ls` lists them")
	}
	return sites, nil
}

// movesView is what nodes would give away.
type movesView struct {
	Moves []balance.Move `json:"moves"`
	Bytes int64          `json:"bytes"`
	// CopyNS is how long that takes at the rate that was given, in nanoseconds; 0: not
	// known, or nothing moves.
	CopyNS time.Duration `json:"copy_ns,omitempty"`
	// Unknown is how many slices have a size that nobody told: they are left out.
	Unknown int             `json:"unknown,omitempty"`
	Stuck   []balance.Stuck `json:"stuck"`
	Notes   []string        `json:"notes"`
}

// foreseeMoves says what moves in a state at a rate in Mbit/s for each copy. A node
// gives one slice at a time, and takes one at a time.
func foreseeMoves(s *whatif.State, marks func(ids.Site) geoconfig.Balance, rate float64) movesView {
	v := movesView{Moves: []balance.Move{}, Stuck: []balance.Stuck{}, Notes: []string{}}
	var held []balance.Held
	for i := range s.Slices {
		x := &s.Slices[i]
		if x.Bytes == whatif.UnknownSize {
			v.Unknown++
		} else {
			held = append(held, balance.Held{Row: x.SliceRow, Bytes: x.Bytes})
		}
	}
	away := map[ids.Node]bool{}
	for _, n := range s.Nodes {
		away[n.ID] = n.Away
	}
	moves, stuck := balance.Plan(rowsOf(s.Nodes), held, func(id ids.Node) bool { return away[id] }, marks)
	v.Moves, v.Stuck = append(v.Moves, moves...), append(v.Stuck, stuck...)
	busiest, at := int64(0), map[ids.Node]int64{}
	for _, m := range moves {
		v.Bytes += m.Bytes
		for _, n := range []ids.Node{m.From, m.To} {
			at[n] += m.Bytes
			busiest = max(busiest, at[n])
		}
	}
	if rate > 0 {
		v.CopyNS = time.Duration(float64(busiest) * 8 / (rate * 1e6) * float64(time.Second))
	}
	if len(moves) > 0 {
		v.Notes = append(v.Notes, "The nodes choose by when slices were used last, which is not known here: others of such sizes may move.")
	}
	if v.Unknown > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("The size of %d slices is not known, and they are left out: their actives did not answer, or --contact is not given.", v.Unknown))
	}
	for _, x := range stuck {
		if text := balance.Remedy(x.Why, x.Site, marks(x.Site)); text != "" {
			v.Notes = append(v.Notes, fmt.Sprintf("Node %s at %s stays above its high mark: %s.", short(x.Node), x.Site, text))
		}
	}
	return v
}

func (v movesView) text(w io.Writer) {
	if len(v.Moves) == 0 {
		fmt.Fprintln(w, "Nothing moves.")
	} else {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "SLICE\tFROM\tTO\tBYTES")
		for _, m := range v.Moves {
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", m.Slice, short(m.From), short(m.To), size(m.Bytes))
		}
		_ = t.Flush() // whoever reads it has gone
		took := ""
		if v.CopyNS > 0 {
			took = fmt.Sprintf(", which takes %v or more", v.CopyNS.Round(time.Second))
		}
		fmt.Fprintf(w, "%d slices move, %s%s.\n", len(v.Moves), size(v.Bytes), took)
	}
	for _, n := range v.Notes {
		fmt.Fprintln(w, "Note:", n)
	}
}

// balancing says what a node does about a disk that is above its high mark, or why it
// does nothing; empty: it is not. The nodes of a demo share one disk by intent, so none
// of them could help another one.
func (n nodeView) balancing(demo bool) string {
	b := n.Balance
	switch {
	case b == nil:
		return ""
	case b.Giving != 0:
		return fmt.Sprintf("node %s at %s gives slice %d to %s: its disk is on the way from above %d%% to %d%%", short(n.ID), n.Site, b.Giving, short(b.To), b.HighPercent, b.LowPercent)
	case b.Remedy != "" && !demo:
		return fmt.Sprintf("the disk of node %s at %s is above %d%%, and no slice moves away: %s", short(n.ID), n.Site, b.HighPercent, b.Remedy)
	}
	return ""
}
