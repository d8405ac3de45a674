package experiments

import (
	"fmt"
	"time"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// Where others' figures of failures are from.
const (
	mamsFailures   = "CFS with MAMS on one LAN, Table 2, Table 3 and Figure 11: time without operations, of which 5 s are its session (docs/experiments.md, Figures of others)"
	beanfsFailures = "BeanFS's Figure 10: the rate while two servers of 4, and of 64, fail and return (docs/experiments.md, Figures of others)"
)

// mams is what MAMS's paper says of such a failure, if anything.
func (k failuresKind) mams() report.Cell {
	switch k {
	case failuresKill:
		return report.Text("5.4-6.8")
	case failuresPause, failuresUnplug, failuresRestart:
		return report.Text("about 6")
	}
	return report.None()
}

func (k failuresKind) beanfs() report.Cell {
	if k.hitsTwo() {
		return report.Text("slight dip; hardly visible")
	}
	return report.None()
}

// rate is how many events a second were acknowledged in a time.
func rate(events []load.Event, from, to time.Time) float64 {
	n := 0
	for _, end := range ends(events) {
		if !end.Before(from) && end.Before(to) {
			n++
		}
	}
	if !to.After(from) {
		return nan()
	}
	return float64(n) / to.Sub(from).Seconds()
}

// longest is the longest event, in milliseconds, of those that ended in a time.
func longest(events []load.Event, from, to time.Time) float64 {
	most := nan()
	for _, e := range events {
		if took := float64(e.Took) / 1000; !e.End().Before(from) && !e.End().After(to) && !(took <= most) {
			most = took
		}
	}
	return most
}

func failuresReport(p failuresPlan, rows []failuresRow) report.Result {
	return report.Result{
		Title: "failures: writers while members of their slice fail and return",
		SetUp: fmt.Sprintf("Five sites have a node each, %g ms apart. A slice has three members (five where it says so); %d writers at each of two sites where no node fails create, replace and delete files of %d bytes in it. "+
			"After %v the active fails, and returns after %v: killed, paused, unplugged, or stopped in order and started at once. "+
			"Of two, the active is killed, then half way the one that took over, before the first is back. At the end every acknowledged change is looked for from another site.",
			p.rtt, p.workers, p.bytes, p.calm, p.away),
		Notes: []string{
			"The rates count changes alone: caches answer reads while a member is away.",
			"A slice of three acknowledges nothing with one normal member: where two of them are away, it waits for the first to return.",
			"The longest gap is over all writers, from the failure to their end, and so includes what the return and the failback cost.",
		},
		Tables: []report.Table{failuresPauses(rows), failuresKept(rows)}, Plots: failuresOverTime(p, rows), Figures: rows,
	}
}

// failuresPauses is the table of what the writers saw.
func failuresPauses(rows []failuresRow) report.Table {
	t := report.Table{Name: "pauses", Title: "What the writers saw", Columns: []report.Column{
		{Name: "lease", Unit: "s"}, {Name: "failure"}, {Name: "before", Unit: "op/s"}, {Name: "while away", Unit: "op/s"}, {Name: "after the return", Unit: "op/s"},
		{Name: "longest gap", Unit: "ms"}, {Name: "longest operation", Unit: "ms"}, {Name: "all normal after the return", Unit: "s"},
		{Name: "MAMS, gap in s", Source: mamsFailures}, {Name: "BeanFS, rate", Source: beanfsFailures},
	}}
	for _, r := range rows {
		whole := report.None()
		if r.Whole != nil {
			whole = report.Number(max(0, r.Whole.Sub(r.Back).Seconds()))
		}
		t.Add(report.Number(r.Lease.Seconds()), report.Text(string(r.Kind)), report.Number(rate(r.changes, r.Began.Add(r.Failed.Sub(r.Began)/3), r.Failed)),
			report.Number(rate(r.changes, r.Failed, r.Back)), report.Number(rate(r.changes, r.Back, r.Ended)), report.Number(1000*stall(r.changes, r.Failed, r.Ended)),
			report.Number(longest(r.changes, r.Failed, r.Ended)), whole, r.Kind.mams(), r.Kind.beanfs())
	}
	return t
}

// failuresKept is the table of what was promised and what of it is there.
func failuresKept(rows []failuresRow) report.Table {
	t := report.Table{Name: "acknowledged", Title: "What was acknowledged, looked for from another site", Columns: []report.Column{
		{Name: "lease", Unit: "s"}, {Name: "failure"}, {Name: "changes acknowledged"}, {Name: "answered by an error"}, {Name: "files looked for"}, {Name: "lost"}, {Name: "limit"},
	}}
	for _, r := range rows {
		v := r.Verdict
		t.Add(report.Number(r.Lease.Seconds()), report.Text(string(r.Kind)), report.Count(v.Acknowledged), report.Count(v.Unknown), report.Count(v.Files), report.Count(len(v.Lost)), report.Count(0))
	}
	return t
}

// failuresOverTime has a plot for each lease, with a line for each failure.
func failuresOverTime(p failuresPlan, rows []failuresRow) []report.Plot {
	var plots []report.Plot
	for _, lease := range p.leases {
		plot := report.Plot{
			Name: fmt.Sprintf("overtime-%d-ms", lease.Milliseconds()), Title: fmt.Sprintf("Acknowledged changes around a failure, lease %v", lease),
			X: report.Axis{Label: "time since the failure, s"}, Y: report.Axis{Label: "changes, /s", FromZero: true},
			Bands: []report.Band{{Name: "away (restart: until it has started; two: and half as long again)", From: 0, To: p.away.Seconds()}},
		}
		for _, r := range rows {
			if r.Lease != lease {
				continue
			}
			l := report.Line{Name: string(r.Kind)}
			whole := r.Ended.Sub(r.Began)
			all := rates(r.changes, r.Began, whole)
			for i, v := range all[:int(whole/bin)] { // the last bin is not a whole one
				l.X, l.Y = append(l.X, float64(i)*bin.Seconds()-r.Failed.Sub(r.Began).Seconds()), append(l.Y, v)
			}
			plot.Lines = append(plot.Lines, l)
		}
		plots = append(plots, plot)
	}
	return plots
}
