package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

// whatIfView prints a prediction for people.
type whatIfView struct {
	whatif.Outcome
	failedAfter time.Duration
}

func (v whatIfView) text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "Now:\t%s\n", standings(v.Before))
	fmt.Fprintf(t, "After seconds:\t%s\n", standings(v.During))
	fmt.Fprintf(t, "%s:\t%s\n", v.repaired(), standings(v.After))
	_ = t.Flush() // whoever reads it has gone
	fmt.Fprintln(w, criticalSites(v.After.Critical))
	v.sites(w)
	v.changes(w)
	copiesText(w, v.Copies, v.CopyNS)
	for _, n := range v.Notes {
		fmt.Fprintln(w, "\nNote:", n)
	}
}

// repaired says when all copies are made.
func (v whatIfView) repaired() string {
	switch {
	case len(v.Copies) == 0:
		return "In the end"
	case v.CopyNS > 0:
		return "After " + (v.failedAfter + v.CopyNS).Round(time.Second).String()
	}
	return "After the copies"
}

// standings counts slices in words.
func standings(s whatif.Summary) string {
	if s.Slices == 0 {
		return "no slices"
	}
	var out []string
	for _, x := range []struct {
		n    int
		what string
	}{{s.Protected, "protected"}, {s.Under, "serving with fewer copies"}, {s.Waiting, "not serving until a member is back"}, {s.Lost, "without a whole copy"}} {
		switch {
		case x.n == 1:
			out = append(out, "1 slice "+x.what)
		case x.n > 1:
			out = append(out, fmt.Sprintf("%d slices %s", x.n, x.what))
		}
	}
	if len(out) == 1 && s.Slices > 1 {
		return "all " + out[0]
	}
	return strings.Join(out, ", ")
}

func criticalSites(sites []ids.Site) string {
	switch len(sites) {
	case 0:
		return "In the end any one site may be lost, and every slice that serves goes on."
	case 1:
		return fmt.Sprintf("In the end the loss of %s would stop slices.", sites[0])
	}
	return fmt.Sprintf("In the end the loss of any of %s would stop slices.", strings.Join(words(sites), ", "))
}

func words(sites []ids.Site) []string {
	var out []string
	for _, s := range sites {
		out = append(out, string(s))
	}
	return out
}

// sites shows what users wait for at each site, now and in the end.
func (v whatIfView) sites(w io.Writer) {
	fmt.Fprintln(w, "\nRound trips that users wait for, in ms, as a median over slices (now > in the end):")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SITE\tREAD OF ITS OWN\tWRITE OF ITS OWN\tREAD OF ALL\tWRITE OF ALL")
	for _, s := range v.Sites {
		if s.Lost {
			fmt.Fprintf(t, "%s\tlost\n", s.Name)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name,
			change(s.OwnBefore, s.OwnAfter, func(l whatif.Latency) time.Duration { return l.Read }),
			change(s.OwnBefore, s.OwnAfter, func(l whatif.Latency) time.Duration { return l.Write }),
			change(s.AllBefore, s.AllAfter, func(l whatif.Latency) time.Duration { return l.Read }),
			change(s.AllBefore, s.AllAfter, func(l whatif.Latency) time.Duration { return l.Write }))
	}
	_ = t.Flush() // whoever reads it has gone
}

func change(before, after whatif.Latencies, part func(whatif.Latency) time.Duration) string {
	one := func(l whatif.Latencies) string {
		if l.Slices == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", ms(part(l.Median)))
	}
	if a, b := one(before), one(after); a != b {
		return a + " > " + b
	}
	return one(after)
}

// changes lists the slices that change.
func (v whatIfView) changes(w io.Writer) {
	if len(v.Slices) == 0 {
		fmt.Fprintln(w, "\nNo slice changes.")
		return
	}
	const most = 50
	fmt.Fprintln(w, "\nSlices that change:")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SLICE\tHOME\tACTIVE\tCOPIES NOW\tAFTER SECONDS\tIN THE END")
	for _, s := range v.Slices[:min(len(v.Slices), most)] {
		active := string(s.Before.Site)
		if s.After.Active != s.Before.Active {
			active += " > " + string(s.After.Site)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.Home, active, copiesOf(s.Before), copiesOf(s.During), copiesOf(s.After))
	}
	_ = t.Flush() // whoever reads it has gone
	if n := len(v.Slices) - most; n > 0 {
		fmt.Fprintf(w, "and %d more; --json lists all\n", n)
	}
}

func copiesOf(s whatif.SliceState) string {
	at := strings.Join(words(s.Copies), " ")
	switch s.Stands {
	case "waiting":
		return strings.TrimSpace(at + " (not serving)")
	case "lost":
		return "none"
	}
	return at
}

// copiesText shows which bytes go where.
func copiesText(w io.Writer, copies []whatif.Copies, took time.Duration) {
	if len(copies) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCopies to make:")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tTO\tSLICES\tBYTES")
	for _, c := range copies {
		amount := size(c.Bytes)
		switch {
		case c.Unknown == c.Slices:
			amount = "not known"
		case c.Unknown > 0:
			amount += fmt.Sprintf(", and %d slices of unknown size", c.Unknown)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", c.From, c.To, c.Slices, amount)
	}
	_ = t.Flush() // whoever reads it has gone
	if took > 0 {
		fmt.Fprintf(w, "They take %v, at the rate given, on all links at once.\n", took.Round(time.Second))
	}
}
