package command

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/geo/changes"
)

type budgetCmd struct {
	Ls     budgetLsCmd     `cmd:"" help:"List the budgets between sites."`
	Set    budgetSetCmd    `cmd:"" help:"Bound the content that two sites send each other."`
	Remove budgetRemoveCmd `cmd:"" help:"Let two sites send each other as much as the line takes."`
}

type budgetLsCmd struct{ adminFlags }

// Help shows how it is called.
func (budgetLsCmd) Help() string { return help("cartwheel budget ls") }

// Run lists the budgets.
func (c budgetLsCmd) Run(e *env) error {
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		rows, err := a.Read(ctx, geoconfig.Query{Sites: true})
		if err != nil {
			return err
		}
		out := changes.Budgets(rows.Sites)
		return e.print(out, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tSITE\tRATE EACH WAY\tHOURS\tOUTSIDE\tREPLICATION\tREPAIR\tREBALANCING")
			for _, p := range out {
				hours, outside := "always", "-"
				if p.Hours != nil {
					hours, outside = p.Hours.String(), changes.RateText(p.Outside)
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d%%\t%d%%\t%d%%\n", p.Site, p.Other, changes.RateText(p.Rate), hours, outside,
					p.Shares.Replication, p.Shares.Repair, p.Shares.Rebalancing)
			}
			_ = t.Flush() // whoever reads it has gone
		})
	})
}

// sitesFlags name a pair of sites.
type sitesFlags struct {
	adminFlags
	Site   string `arg:"" help:"One site's name."`
	Other  string `arg:"" help:"The other site's name."`
	DryRun bool   `help:"Only check, and say what would be."`
}

// check refuses a pair that is none.
func (f sitesFlags) check() error {
	if f.Site == f.Other {
		return fault.E(fault.Usage, "command.check", f.Site, "is named twice: a budget is between two different sites")
	}
	return nil
}

// verb says what was done, or would be.
func (f sitesFlags) verb() string {
	if f.DryRun {
		return "would have"
	}
	return "have"
}

type budgetSetCmd struct {
	sitesFlags
	Rate        string `required:"" help:"What all nodes of one site together send to the other one, such as '20 Mbit/s'; each way."`
	Hours       string `placeholder:"FROM-UNTIL" help:"When the rate holds, such as 08:00-18:00; they may go past midnight. Without it: always."`
	Zone        string `help:"Time zone of the hours, such as Europe/Oslo (default: UTC)."`
	Outside     string `placeholder:"RATE" help:"Rate outside the hours (default: unlimited)."`
	Replication int    `name:"replication-share" placeholder:"PERCENT" default:"10" help:"Part of the rate that writes get at least which wait for the other site's copies."`
	Repair      int    `name:"repair-share" placeholder:"PERCENT" default:"5" help:"The same for copies that lag behind or are lost."`
	Rebalancing int    `name:"rebalancing-share" placeholder:"PERCENT" default:"2" help:"The same for copies that move."`
}

// Help shows how it is called.
func (budgetSetCmd) Help() string {
	return help(`cartwheel budget set boston tokyo --rate '20 Mbit/s' --hours 08:00-18:00 --zone Asia/Tokyo

What clients read and write goes first, then replication, repair and rebalancing. Operations and beacons never wait.`)
}

// Run sets the budget.
func (c budgetSetCmd) Run(e *env) error {
	terms, err := c.terms()
	if err != nil {
		return err
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		p, err := changes.SetBudget(ctx, a, a.order(), ids.Site(c.Site), ids.Site(c.Other), terms, c.DryRun)
		if err != nil {
			return err
		}
		return e.done(p, "%s and %s %s a budget, each way: %s", p.Site, p.Other, c.verb(), p.Terms())
	})
}

// terms reads what the options say, and refuses what makes no sense before
// anything is asked.
func (c budgetSetCmd) terms() (geoconfig.Budget, error) {
	const op fault.Op = "command.terms"
	b := geoconfig.Budget{Shares: geoconfig.Shares{Replication: c.Replication, Repair: c.Repair, Rebalancing: c.Rebalancing}}
	err := c.check()
	if err == nil {
		b.Rate, err = parseRate("--rate", c.Rate)
	}
	if err == nil && c.Outside != "" {
		b.Outside, err = parseRate("--outside", c.Outside)
	}
	if err == nil && c.Hours != "" {
		b.Hours, err = parseHours(c.Hours, c.Zone)
	}
	if err != nil {
		return b, err
	}
	if c.Zone != "" && c.Hours == "" {
		return b, fault.E(fault.Usage, op, "--zone", "needs --hours")
	}
	b.Other = ids.Site(max(c.Site, c.Other))
	if wrong := b.Check(ids.Site(min(c.Site, c.Other))); wrong != "" {
		return b, fault.E(fault.Usage, op, c.Site+" and "+c.Other, wrong)
	}
	b.Other = ""
	return b, nil
}

// parseRate reads a rate: bits per second with a decimal prefix.
func parseRate(flag, text string) (int64, error) {
	value, unit, err := humanize.ParseSI(strings.TrimSpace(text))
	switch strings.TrimSuffix(unit, "/s") {
	case "bit", "bits":
	case "B":
		value *= 8
	default:
		if err == nil && value != 0 {
			err = fault.E(fault.Usage, "", unit, "is no unit of a rate")
		}
	}
	if err != nil || math.IsNaN(value) || value < 0 || value > 1e18 {
		return 0, fault.Errorf(fault.Usage, "command.parseRate", flag, "%q is no rate: write it as '20 Mbit/s' or '2.5 MB/s'", text)
	}
	return int64(value), nil
}

// parseHours reads a part of a day: 08:00-18:00.
func parseHours(text, zone string) (*geoconfig.Hours, error) {
	minute := func(s string) (int, bool) {
		at, err := time.Parse("15:04", strings.TrimSpace(s))
		return at.Hour()*60 + at.Minute(), err == nil
	}
	from, until, dash := strings.Cut(text, "-")
	h := &geoconfig.Hours{Zone: zone}
	var ok, okay bool
	h.From, ok = minute(from)
	h.Until, okay = minute(until)
	if !dash || !ok || !okay {
		return nil, fault.Errorf(fault.Usage, "command.parseHours", "--hours", "%q are no hours of a day: write them as 08:00-18:00, between 00:00 and 23:59", text)
	}
	return h, nil
}

type budgetRemoveCmd struct{ sitesFlags }

// Help shows how it is called.
func (budgetRemoveCmd) Help() string { return help("cartwheel budget remove boston tokyo") }

// Run removes the budget.
func (c budgetRemoveCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	return administered(e, c.adminFlags, func(ctx context.Context, a *administration) error {
		p, err := changes.RemoveBudget(ctx, a, a.order(), ids.Site(c.Site), ids.Site(c.Other), c.DryRun)
		if err != nil {
			return err
		}
		return e.done(p, "%s and %s %s no budget any more; it was: %s", p.Site, p.Other, c.verb(), p.Terms())
	})
}
