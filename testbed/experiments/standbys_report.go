package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/report"
)

// mamsStandby is what each standby more costs MAMS, in percent of the rate, and
// mamsStandbys where that is from.
const (
	mamsStandby  = 4
	mamsStandbys = "CFS with MAMS on one LAN, Figure 9: about 4 % for each standby; its journal alone, Figure 8: 3 % for each replica (docs/experiments.md, Figures of others)"
)

func standbysReport(p standbysPlan, rows []standbysRow, actives []activesRow) report.Result {
	t := report.Table{Name: "standbys", Title: "Durable creates of 4 kB, by the members of their slice", Columns: []report.Column{
		{Name: "round trip", Unit: "ms"}, {Name: "members"}, {Name: "creates", Unit: "/s"}, {Name: "median", Unit: "ms"}, {Name: "p99", Unit: "ms"},
		{Name: "of the fewest members' rate", Unit: "%"}, {Name: "each standby more costs", Unit: "%"}, {Name: "creates that failed"}, {Name: "MAMS, a standby costs in %", Source: mamsStandbys},
	}}
	plot := report.Plot{
		Name: "standbys", Title: "What is left of the rate with each standby more", X: report.Axis{Label: "members of the slice"},
		Y: report.Axis{Label: "of the rate with the fewest members, %", FromZero: true},
	}
	for _, rtt := range p.rtts {
		line := report.Line{Name: standbysName(rtt)}
		var first, last float64 // rates
		var fewer int
		for i, r := range standbysOf(rows, rtt) {
			now := r.rate()
			cost, theirs := report.None(), report.None()
			if i == 0 {
				first = now
			} else {
				cost, theirs = report.Number(100*(1-now/last)/float64(r.Level-fewer)), report.Text("about 4")
			}
			failed, _ := r.failed()
			t.Add(report.Number(rtt), report.Count(r.Level), report.Number(now), report.Number(median(r.creates())), report.Number(quantile(r.creates(), 0.99)),
				report.Number(100*now/first), cost, report.Count(failed), theirs)
			line.X, line.Y = append(line.X, float64(r.Level)), append(line.Y, 100*now/first)
			last, fewer = now, r.Level
		}
		plot.Lines = append(plot.Lines, line)
	}
	theirs := report.Line{Name: "MAMS, about (not measured here)", Dashed: true}
	for _, l := range p.levels {
		theirs.X, theirs.Y = append(theirs.X, float64(l)), append(theirs.Y, 100-mamsStandby*float64(l-p.levels[0]))
	}
	plot.Lines = append(plot.Lines, theirs)
	return report.Result{
		Title: "standbys: what each standby more costs",
		SetUp: fmt.Sprintf("Five nodes, in one place (round trip 0) or at sites of their own. A slice of each number of members has its active at the first site. "+
			"%d workers of a client there create files of 4 kB, each on the disks of all members when it is acknowledged. Each number of members has %d turns of %v; the rate is the middle one. "+
			"Then more and more clients with as many workers, each beside another node, create files in slices of their own with three members.",
			p.workers, p.rounds, p.length),
		Notes: []string{
			"All nodes share the processors and the disk of one machine, so that a standby's own work slows the others: on machines of their own it costs less.",
		},
		Tables: []report.Table{t, activesTable(p, actives)}, Plots: []report.Plot{plot, activesPlot(p, actives)}, Figures: map[string]any{"standbys": rows, "actives": actives},
	}
}

func standbysName(rtt float64) string {
	if rtt == 0 {
		return "in one place"
	}
	return fmt.Sprintf("%g ms apart", rtt)
}

// standbysOf are the rows of one round trip, fewest members first.
func standbysOf(rows []standbysRow, rtt float64) (out []standbysRow) {
	for _, r := range rows {
		if r.RTT == rtt {
			out = append(out, r)
		}
	}
	return out
}
