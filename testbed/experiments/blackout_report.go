package experiments

import (
	"fmt"
	"math"
	"time"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

const backoffSource = "libp2p's back-off of dials alone: minutes (docs/experiments.md, Figures of others)"

// Rates are counted in bins of this length; full speed is this share of the
// calm rate, held for fullFor.
const (
	bin       = time.Second
	fullShare = 0.8
	fullFor   = 3 * time.Second
)

// rates are acknowledged operations a second, in bins since began.
func rates(events []load.Event, began time.Time, whole time.Duration) []float64 {
	out := make([]float64, int(whole/bin)+1)
	for _, e := range events {
		at := int(e.End().Sub(began) / bin)
		if e.Err == "" && at >= 0 && at < len(out) {
			out[at] += float64(time.Second) / float64(bin)
		}
	}
	return out
}

// between are the rates from one time to another.
func between(v []float64, began, from, to time.Time) []float64 {
	a, b := int(math.Ceil(from.Sub(began).Seconds())), int(to.Sub(began).Seconds())
	a, b = max(a, 0), min(b, len(v))
	if a >= b {
		return nil
	}
	return v[a:b]
}

// recovery is how many seconds after back the site is at full speed: that long
// until a time of fullFor begins in which it does its share. NaN if none does
// before until.
func recovery(events []load.Event, back, until time.Time, calm float64) float64 {
	const step = 100 * time.Millisecond
	all := ends(events)
	first, next := 0, 0 // of the operations in the window
	for from := back; !from.Add(fullFor).After(until); from = from.Add(step) {
		for first < len(all) && all[first].Before(from) {
			first++
		}
		for next < len(all) && all[next].Before(from.Add(fullFor)) {
			next++
		}
		if float64(next-first) >= fullShare*calm*fullFor.Seconds() {
			return from.Sub(back).Seconds()
		}
	}
	return nan()
}

// stall is the longest time without an acknowledged operation between from and
// to, in seconds. What goes on behind to is the next blackout's.
func stall(events []load.Event, from, to time.Time) float64 {
	last, longest := from, time.Duration(0)
	for _, end := range ends(events) {
		if end.Before(from) {
			continue
		}
		if last.Before(to) {
			longest = max(longest, min(end.Sub(last), to.Sub(last)))
		}
		last = end
	}
	if last.Before(to) {
		longest = max(longest, to.Sub(last))
	}
	return longest.Seconds()
}

func blackoutReport(p blackoutPlan, began time.Time, records []siteRecord, outages []outage) report.Result {
	r := report.Result{
		Title: "blackout: a site off under load from every site",
		SetUp: fmt.Sprintf("%d workers at each of %d sites 100 ms apart create, replace, read and delete files of %d bytes in folders of their own site, with three replicas. "+
			"Every %v one site is off for %v. At the end every acknowledged change is looked for from another site.", p.workers, len(records), p.bytes, p.every, p.off),
		Tables: []report.Table{acknowledged(records), returns(p, began, records, outages)},
		Plots:  []report.Plot{overTime(p, began, records, outages)},
	}
	r.Figures = map[string]any{"began": began, "outages": outages, "sites": records}
	return r
}

// acknowledged is the table of what was promised and what of it is there.
func acknowledged(records []siteRecord) report.Table {
	t := report.Table{Name: "acknowledged", Title: "What was acknowledged", Columns: []report.Column{
		{Name: "site"}, {Name: "changes acknowledged"}, {Name: "answered by an error"}, {Name: "reads"}, {Name: "lost"}, {Name: "limit"},
	}}
	var sum load.Verdict
	lost := 0
	for _, s := range records {
		v := s.Verdict
		t.Add(report.Text(s.Site), report.Count(v.Acknowledged), report.Count(v.Unknown), report.Count(v.Reads), report.Count(len(v.Lost)), report.Count(0))
		sum.Acknowledged, sum.Unknown, sum.Reads, lost = sum.Acknowledged+v.Acknowledged, sum.Unknown+v.Unknown, sum.Reads+v.Reads, lost+len(v.Lost)
	}
	t.Add(report.Text("all"), report.Count(sum.Acknowledged), report.Count(sum.Unknown), report.Count(sum.Reads), report.Count(lost), report.Count(0))
	return t
}

// returns is the table of what each blackout did.
func returns(p blackoutPlan, began time.Time, records []siteRecord, outages []outage) report.Table {
	t := report.Table{Name: "returns", Title: fmt.Sprintf("Each blackout (full speed: %.0f %% of the rate before the first, for %v)", 100*fullShare, fullFor), Columns: []report.Column{
		{Name: "off"}, {Name: "seen at"}, {Name: "calm", Unit: "op/s"}, {Name: "while off", Unit: "op/s"}, {Name: "longest stall", Unit: "s"},
		{Name: "full speed again after", Unit: "s"}, {Name: "back-off alone", Source: backoffSource}, {Name: "to reach", Unit: "s"},
	}}
	for i, o := range outages {
		until := began.Add(p.whole())
		if i+1 < len(outages) {
			until = outages[i+1].Off
		}
		for _, s := range records {
			v := rates(s.events, began, p.whole())
			calm := median(between(v, began, began.Add(p.calm/3), began.Add(p.calm)))
			t.Add(report.Text(fmt.Sprintf("%d: %s", i+1, o.Site)), report.Text(s.Site), report.Number(calm), report.Number(mean(between(v, began, o.Off, o.Back))),
				report.Number(stall(s.events, o.Off, until)), report.Number(recovery(s.events, o.Back, until, calm)), report.Text("minutes"), report.Number(5))
		}
	}
	return t
}

func overTime(p blackoutPlan, began time.Time, records []siteRecord, outages []outage) report.Plot {
	plot := report.Plot{
		Name: "overtime", Title: "Acknowledged operations while sites go off and come back", X: report.Axis{Label: "time, s", FromZero: true},
		Y: report.Axis{Label: "operations, /s", FromZero: true},
	}
	for _, o := range outages {
		plot.Bands = append(plot.Bands, report.Band{Name: o.Site + " off", From: o.Off.Sub(began).Seconds(), To: o.Back.Sub(began).Seconds()})
	}
	for _, s := range records {
		l := report.Line{Name: s.Site}
		for i, v := range rates(s.events, began, p.whole()) {
			l.X, l.Y = append(l.X, float64(i)*bin.Seconds()), append(l.Y, v)
		}
		plot.Lines = append(plot.Lines, l)
	}
	return plot
}
