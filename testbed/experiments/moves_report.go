package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/report"
)

func movesReport(p movesPlan, rows []movesRow) report.Result {
	t := report.Table{Name: "moves", Title: "What the writers saw of a move", Columns: []report.Column{
		{Name: "objects in the slice"}, {Name: "what happens"}, {Name: "it takes", Unit: "s"}, {Name: "moved", Unit: "MB"}, {Name: "before", Unit: "op/s"}, {Name: "meanwhile", Unit: "op/s"},
		{Name: "longest gap before", Unit: "ms"}, {Name: "longest gap", Unit: "ms"}, {Name: "longest operation", Unit: "ms"},
		{Name: "acknowledged"}, {Name: "answered by an error"}, {Name: "lost"}, {Name: "limit"},
	}}
	plot := report.Plot{Name: "gaps", Title: "The longest time without an acknowledged change", Y: report.Axis{Label: "ms", FromZero: true}}
	for _, objects := range p.objects {
		plot.Groups = append(plot.Groups, fmt.Sprintf("%d files", objects))
	}
	for _, k := range p.kinds {
		bar := report.Bar{Name: movesName(k)}
		for _, r := range rows {
			if r.Move.Kind == k {
				gap, _ := r.gap()
				bar.Y = append(bar.Y, gap)
			}
		}
		plot.Bars = append(plot.Bars, bar)
	}
	for _, r := range rows {
		m := r.Move
		gap, before := r.gap()
		moved := report.None()
		if r.Moved != nil {
			moved = report.Number(float64(*r.Moved) / 1e6)
		}
		t.Add(report.Count(r.Objects), report.Text(movesName(m.Kind)), report.Number(m.Back.Sub(m.Failed).Seconds()), moved,
			report.Number(rate(m.changes, m.Began.Add(m.Failed.Sub(m.Began)/3), m.Failed)), report.Number(rate(m.changes, m.Failed, m.Back)),
			report.Number(before), report.Number(gap), report.Number(longest(m.changes, m.Failed, m.Ended)),
			report.Count(m.Verdict.Acknowledged), report.Count(m.Verdict.Unknown), report.Count(len(m.Verdict.Lost)), report.Count(0))
	}
	return report.Result{
		Title: "moves: writers while their slice moves",
		SetUp: fmt.Sprintf("Five sites have a node each, %g ms apart; a slice has three members, and the lease is %v. %d writers at each of two sites without a member create, replace and delete files of %d bytes in it. "+
			"After %v the slice is handed over, a member's node is drained, or the active's node is stopped in order. It is undone at once, or after two leases. At the end every acknowledged change is looked for from another site.",
			p.failures.rtt, p.lease(), p.workers, p.failures.bytes, p.failures.calm),
		Notes: []string{
			"The longest gap counts from the order until two leases after its end, over all writers.",
			"What was moved is what nodes took from others to have copies of slices; the undoing may be in it.",
		},
		Tables: []report.Table{t}, Plots: []report.Plot{plot}, Figures: rows,
	}
}

// movesName says what happens.
func movesName(k failuresKind) string {
	return map[failuresKind]string{movesHandOver: "hand-over", movesStandby: "a standby's node is drained", movesActive: "the active's node is drained", movesStop: "the active's node stops"}[k]
}
