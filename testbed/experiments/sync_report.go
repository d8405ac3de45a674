package experiments

import (
	"fmt"
	"time"

	"cartwheel.dev/testbed/report"
)

// Where others' figures of returns and takeovers are from.
const (
	mamsRenewing   = "CFS with MAMS on one LAN, Figure 12: the last step of a junior, and Table 2: from the kill until clients go on, of which 5 s are its session (docs/experiments.md, Figures of others)"
	beanfsSync     = "BeanFS's Figure 9: 1,000 volumes on 3 servers, one of which missed k operations (docs/experiments.md, Figures of others)"
	hdfsTakeover   = "HDFS's backup node, as MAMS's paper measured it in Table 2 for images of 16 MB to 1 GB (docs/experiments.md, Figures of others)"
	mamsLastStep   = 10_000 // operations, for which the paper prints a figure
	mamsLastStepMS = 22.8
)

// takeoverWait is for how many leases a standby hears nothing before it takes over.
const takeoverWait = 1.2

func syncReport(p syncPlan, missed []syncMissed, sizes []syncSize) report.Result {
	return report.Result{
		Title: "sync: the return of a standby, and takeovers of slices of several sizes",
		SetUp: fmt.Sprintf("Five sites have a node each, %g ms apart; slices have three members, and the lease is %v. A standby is killed, files of 4 kB are created without it, and it is started again. "+
			"Then the actives of slices with more and more files are killed while %d writers at each of two other sites work; they are started again after %v.",
			p.failures.rtt, p.lease(), p.failures.workers, p.failures.away),
		Notes: []string{
			"Times of a return count from the order to start the process. The standby's own log says when it became a junior and a standby.",
			"A standby takes over after 1.2 leases of silence, counted from the last beacon: a gap may be a little shorter.",
		},
		Tables: []report.Table{syncReturns(missed), syncPauses(p, sizes)}, Plots: []report.Plot{syncTimes(missed), syncGaps(p, sizes)},
		Figures: map[string]any{"missed": missed, "sizes": sizes},
	}
}

// known is a number that may not be known.
func known(v *float64) report.Cell {
	if v == nil {
		return report.None()
	}
	return report.Number(*v)
}

// asJunior is how long the standby was a junior, in milliseconds.
func (r syncMissed) asJunior() float64 {
	if r.Junior == nil || r.Normal == nil {
		return nan()
	}
	return 1000 * (*r.Normal - *r.Junior)
}

func syncReturns(rows []syncMissed) report.Table {
	t := report.Table{Name: "returns", Title: "A standby returns", Columns: []report.Column{
		{Name: "files missed"}, {Name: "entries missed"}, {Name: "content missed", Unit: "MB"}, {Name: "process ready", Unit: "s"}, {Name: "junior", Unit: "s"}, {Name: "standby again", Unit: "s"},
		{Name: "as a junior", Unit: "ms"}, {Name: "all normal, as seen", Unit: "s"}, {Name: "MAMS's last step, ms", Source: mamsRenewing}, {Name: "BeanFS", Source: beanfsSync},
	}}
	for _, r := range rows {
		theirs := report.None()
		if r.Files == mamsLastStep {
			theirs = report.Number(mamsLastStepMS)
		}
		t.Add(report.Count(r.Files), report.Count(r.Entries), report.Number(r.MB), report.Number(r.Ready), known(r.Junior), known(r.Normal), report.Number(r.asJunior()), known(r.Whole),
			theirs, report.Text("proportional to k"))
	}
	return t
}

func syncPauses(p syncPlan, rows []syncSize) report.Table {
	t := report.Table{Name: "takeovers", Title: "The active of a slice is killed under writers", Columns: []report.Column{
		{Name: "files planted"}, {Name: "objects in the slice"}, {Name: "gap of the writers", Unit: "ms"}, {Name: "1.2 leases", Unit: "ms"}, {Name: "all normal after the return", Unit: "s"},
		{Name: "acknowledged"}, {Name: "lost"}, {Name: "limit"}, {Name: "MAMS, s", Source: mamsRenewing}, {Name: "HDFS, s", Source: hdfsTakeover},
	}}
	for _, r := range rows {
		whole := report.None()
		if w := r.Failure.Whole; w != nil {
			whole = report.Number(max(0, w.Sub(r.Failure.Back).Seconds()))
		}
		t.Add(report.Count(r.Planted), report.Count(r.Objects), report.Number(r.gap()), report.Number(1000*p.wait().Seconds()), whole,
			report.Count(r.Failure.Verdict.Acknowledged), report.Count(len(r.Failure.Verdict.Lost)), report.Count(0), report.Text("5.4-6.8, flat in size"), report.Text("2.8-142, with size"))
	}
	return t
}

// wait is for how long a standby hears nothing before it takes over.
func (p syncPlan) wait() time.Duration { return time.Duration(takeoverWait * float64(p.lease())) }

// gap is the longest time without an acknowledged change while the active was away, in
// milliseconds.
func (r syncSize) gap() float64 {
	return 1000 * stall(r.Failure.changes, r.Failure.Failed, r.Failure.Back)
}

func syncTimes(rows []syncMissed) report.Plot {
	start, junior := report.Line{Name: "from the start until it is a standby"}, report.Line{Name: "of that, as a junior", Dashed: true}
	for _, r := range rows {
		x := float64(r.Entries)
		if r.Normal != nil {
			start.X, start.Y = append(start.X, x), append(start.Y, *r.Normal)
		}
		junior.X, junior.Y = append(junior.X, x), append(junior.Y, r.asJunior()/1000)
	}
	return report.Plot{
		Name: "returns", Title: "The return of a standby, by what it missed", X: report.Axis{Label: "entries missed", Log: true},
		Y: report.Axis{Label: "time, s", FromZero: true}, Lines: []report.Line{start, junior},
	}
}

func syncGaps(p syncPlan, rows []syncSize) report.Plot {
	l := report.Line{Name: "gap of the writers"}
	for _, r := range rows {
		l.X, l.Y = append(l.X, float64(r.Objects)), append(l.Y, r.gap()/1000)
	}
	return report.Plot{
		Name: "takeovers", Title: "Writers wait for a takeover, by the size of the slice", X: report.Axis{Label: "objects in the slice", Log: true},
		Y: report.Axis{Label: "longest gap, s", FromZero: true}, Lines: []report.Line{l}, Marks: []report.Mark{{Name: "1.2 leases: the silence before a takeover", Y: p.wait().Seconds()}},
	}
}
