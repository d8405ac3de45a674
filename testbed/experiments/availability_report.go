package experiments

import (
	"fmt"
	"slices"
	"strconv"

	"cartwheel.dev/testbed/report"
)

// policyTable has what is expected of each policy.
func policyTable(p availabilityPlan, rows []availabilityRow) report.Table {
	t := report.Table{Name: "policies", Title: fmt.Sprintf("Expected in a year; slices and bytes are of all %d slices", p.Slices), Columns: []report.Column{
		{Name: "copies"}, {Name: "sites"}, {Name: "downtime", Unit: "min"}, {Name: "of it pauses", Unit: "min"}, {Name: "waits", Unit: "min"}, {Name: "available", Unit: "%"},
		{Name: "takeovers"}, {Name: "slices without a copy"}, {Name: "with only an older one"}, {Name: "bytes lost", Unit: "GB"}, {Name: "share lost"}, {Name: "new copies after", Unit: "min"},
	}}
	for _, r := range rows {
		slices := float64(p.Slices)
		t.Add(report.Count(r.Policy.Level), report.Count(r.Policy.Spread(p.Sites)),
			report.Number(r.Downtime().Minutes()), report.Number(r.Pauses.Minutes()), report.Number(r.Waits.Minutes()), report.Text(percentAvailable(r.Available)),
			report.Number(r.Takeovers), report.Number(r.Lost*slices), report.Number(r.Outdated*slices),
			report.Number(r.LostBytes/1e9), report.Number(r.Lost), report.Number(r.CopiedAfter.Minutes()))
	}
	return t
}

// percentAvailable writes a share with as many digits as tell it from 1.
func percentAvailable(share float64) string {
	for digits := 2; digits < 12; digits++ {
		if text := strconv.FormatFloat(100*share, 'f', digits, 64); text[0] != '1' {
			return strconv.FormatFloat(100*share, 'f', digits+1, 64)
		}
	}
	return "100"
}

// assumptionTable has every figure, and where it is from.
func assumptionTable(p availabilityPlan) report.Table {
	t := report.Table{Name: "assumptions", Title: "What is taken for granted", Columns: []report.Column{{Name: "figure"}, {Name: "value"}, {Name: "from"}, {Name: "what it is"}}}
	for _, x := range figures() {
		from := p.from[x.name]
		if from == "" {
			from = "default"
		}
		t.Add(report.Text(x.name), report.Text(x.text(&p.Figures)), report.Text(from), report.Text(x.help))
	}
	return t
}

// policyPlots draws what a policy brings against its copies, a line for each number of sites.
func policyPlots(rows []availabilityRow) []report.Plot {
	plot := func(name, title, label string, of func(availabilityRow) float64) report.Plot {
		p := report.Plot{Name: name, Title: title, X: report.Axis{Label: "copies"}, Y: report.Axis{Label: label, Log: true}}
		var spreads []int
		for _, r := range rows {
			if !slices.Contains(spreads, r.Policy.Sites) {
				spreads = append(spreads, r.Policy.Sites)
			}
		}
		slices.Sort(spreads)
		for _, n := range spreads {
			l := report.Line{Name: "at one site"}
			if n != 1 {
				l.Name = fmt.Sprintf("at %d sites", n)
			}
			if n == 0 {
				l.Name = "at as many sites as there are"
			}
			for _, r := range rows {
				if r.Policy.Sites == n {
					l.X, l.Y = append(l.X, float64(r.Policy.Level)), append(l.Y, of(r))
				}
			}
			// A line of one point would not show.
			l.Points = len(l.X) == 1
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	return []report.Plot{
		plot("downtime", "Expected downtime of a slice", "minutes a year", func(r availabilityRow) float64 { return r.Downtime().Minutes() }),
		plot("loss", "Expected loss", "bytes a year, of all slices", func(r availabilityRow) float64 { return r.LostBytes }),
	}
}
