package experiments

import (
	"fmt"
	"time"

	"cartwheel.dev/testbed/report"
)

// mamsWordcount is where the figure of a word count is from.
const mamsWordcount = "CFS with MAMS on one LAN, Figure 14: 5 GB counted over a failover, beside the same over Boom-FS (docs/experiments.md, Figures of others)"

func wordcountReport(p wordcountPlan, rows []wordcountRow) report.Result {
	return report.Result{
		Title: "wordcount: the words of texts on mounts, over a failover",
		SetUp: fmt.Sprintf("Five sites have a node each, %g ms apart; the lease is %v. %d texts of %d bytes lie in a slice of three members. A program at each of the four other sites than the active's "+
			"reads every fourth text from its mount and writes a partial result for each; one of them merges. Caches are cold. In every other count the active is killed when a third is done.",
			p.failures.rtt, p.failures.leases[0], p.files, p.bytes),
		Notes: []string{
			"A result is right where the merged counts are those of the texts as they were made, before they were written to the mount.",
		},
		Tables: []report.Table{wordcountRuns(rows), wordcountSum(rows)}, Plots: []report.Plot{wordcountOverTime(p, rows)}, Figures: rows,
	}
}

// kind says whether the active was killed.
func (r wordcountRow) kind() string {
	if r.Killed == nil {
		return "undisturbed"
	}
	return "active killed"
}

func wordcountRuns(rows []wordcountRow) report.Table {
	t := report.Table{Name: "counts", Title: "Each count", Columns: []report.Column{
		{Name: "round"}, {Name: "count"}, {Name: "results before the kill"}, {Name: "counting", Unit: "s"}, {Name: "merging", Unit: "s"}, {Name: "longest gap between results", Unit: "s"},
		{Name: "words"}, {Name: "different"}, {Name: "result"},
	}}
	for _, r := range rows {
		done, result := report.None(), "right"
		if r.Killed != nil {
			done = report.Count(r.Done)
		}
		if !r.Right {
			result = "WRONG"
		}
		t.Add(report.Count(r.Round), report.Text(r.kind()), done, report.Number(r.counting()), report.Number(r.merging()), report.Number(r.gap()),
			report.Count(r.Merged.Words), report.Count(r.Merged.Distinct), report.Text(result))
	}
	return t
}

// gap is the longest time without a partial result, in seconds.
func (r wordcountRow) gap() float64 {
	longest, last := 0.0, 0.0
	for _, at := range r.ends() {
		longest, last = max(longest, at-last), at
	}
	return longest
}

// wordcountSum compares the middle of both kinds.
func wordcountSum(rows []wordcountRow) report.Table {
	t := report.Table{Name: "failover", Title: "What the failover cost", Columns: []report.Column{
		{Name: "counts"}, {Name: "undisturbed, median", Unit: "s"}, {Name: "active killed, median", Unit: "s"}, {Name: "longer by", Unit: "s"}, {Name: "longer by", Unit: "%"},
		{Name: "wrong results"}, {Name: "limit"}, {Name: "MAMS", Source: mamsWordcount},
	}}
	var calm, killed []float64
	wrong := 0
	for _, r := range rows {
		if r.Killed == nil {
			calm = append(calm, r.counting())
		} else {
			killed = append(killed, r.counting())
		}
		if !r.Right {
			wrong++
		}
	}
	more := median(killed) - median(calm)
	t.Add(report.Count(len(rows)), report.Number(median(calm)), report.Number(median(killed)), report.Number(more), report.Number(100*more/median(calm)),
		report.Count(wrong), report.Count(0), report.Text("map 28 % shorter than over Boom-FS"))
	return t
}

// ends are the times of all partial results, in seconds from the first start, in order.
func (r wordcountRow) ends() []float64 {
	var all []float64
	for _, e := range r.Each {
		for _, at := range e.Ends {
			all = append(all, float64(at-r.began())/1e6)
		}
	}
	return cumulative("", all).X
}

// wordcountOverTime shows the last count of each kind.
func wordcountOverTime(p wordcountPlan, rows []wordcountRow) report.Plot {
	plot := report.Plot{
		Name: "overtime", Title: "Texts counted, over time", X: report.Axis{Label: "time, s", FromZero: true}, Y: report.Axis{Label: "texts", FromZero: true},
	}
	last := map[string]wordcountRow{}
	for _, r := range rows {
		last[r.kind()] = r
	}
	for _, kind := range []string{"undisturbed", "active killed"} {
		r, ok := last[kind]
		if !ok {
			continue
		}
		l := report.Line{Name: kind}
		for i, at := range r.ends() {
			l.X, l.Y = append(l.X, at), append(l.Y, float64(i+1))
		}
		plot.Lines = append(plot.Lines, l)
		if r.Killed != nil {
			from := r.Killed.Sub(time.UnixMicro(r.began())).Seconds()
			wait := takeoverWait * p.failures.leases[0].Seconds()
			plot.Bands = append(plot.Bands, report.Band{Name: "1.2 leases after the kill", From: from, To: from + wait})
		}
	}
	return plot
}
