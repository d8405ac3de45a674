package experiments

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// webSource is where the figures of WheelFS are from.
const webSource = "WheelFS's paper, Figures 4 to 8, with 40 proxies without failures and 15 with them (docs/experiments.md, Figures of others)"

// webQuiet is how long the web site hears nothing where its load has ended.
const webQuiet = 10 * time.Second

// webPart is some clients in some of a way's time.
type webPart struct {
	when, who string
	// at tells whether a time belongs to it, for the clients of a site.
	at func(site string, t time.Time) bool
}

// offAt is the site that is off at a time, or none.
func (r webRecord) offAt(t time.Time) string {
	for _, o := range r.outages {
		if !t.Before(o.Off) && t.Before(o.Back) {
			return o.Site
		}
	}
	return ""
}

// parts are what the table tells of a way, each on its own.
func (r webRecord) parts(whole time.Duration) []webPart {
	if !r.off {
		quarter := func(n int) func(string, time.Time) bool {
			return func(_ string, t time.Time) bool { return int(4*t.Sub(r.began)/whole) == n }
		}
		return []webPart{{"the first quarter", "all", quarter(0)}, {"the last quarter", "all", quarter(3)}}
	}
	return []webPart{
		{"all sites up", "all", func(_ string, t time.Time) bool { return r.offAt(t) == "" }},
		{"a site off", "all", func(_ string, t time.Time) bool { return r.offAt(t) != "" }},
		{"a site off", "its own", func(site string, t time.Time) bool { return r.offAt(t) == site }},
		{"a site off", "the others'", func(site string, t time.Time) bool { off := r.offAt(t); return off != "" && off != site }},
	}
}

// webSum is what the clients of a part met.
type webSum struct {
	sites, seconds float64 // sites on average, and time
	good, failed   int
	hits           int
	took           []float64 // ms, of good ones
	origin         int       // requests that came to the web site in that time
}

// sum counts a part. Time is counted in steps, so that a part may be any times of
// any sites.
func (r webRecord) sum(part webPart, whole time.Duration) webSum {
	const step = 100 * time.Millisecond
	var s webSum
	sites := slices.Sorted(maps.Keys(r.requests))
	some := func(t time.Time) (n int) {
		for _, site := range sites {
			if part.at(site, t) {
				n++
			}
		}
		return n
	}
	steps, total := 0, 0
	for t := r.began; t.Before(r.began.Add(whole)); t = t.Add(step) {
		if n := some(t); n > 0 {
			steps, total = steps+1, total+n
		}
	}
	s.seconds, s.sites = (time.Duration(steps) * step).Seconds(), float64(total)/float64(steps)
	for _, site := range sites {
		for _, e := range r.requests[site] {
			switch {
			case !part.at(site, e.End()):
			case e.Err != "":
				s.failed++
			default:
				s.good, s.took = s.good+1, append(s.took, float64(e.Took)/1000)
				if e.Hit {
					s.hits++
				}
			}
		}
	}
	for _, e := range r.origin {
		if some(time.UnixMicro(e.At)) > 0 {
			s.origin++
		}
	}
	return s
}

// linkAllows is how many pages a second a client's link carries, their headers
// left out.
func (p webPlan) linkAllows() float64 { return 10e6 / 8 / float64(p.pages.Bytes) }

func webReport(p webPlan, records []webRecord) report.Result {
	service := report.Table{Name: "service", Title: "What the clients got", Columns: []report.Column{
		{Name: "way"}, {Name: "while"}, {Name: "clients"}, {Name: "pages", Unit: "/s"}, {Name: "their links allow", Unit: "/s"}, {Name: "failed", Unit: "/s"},
		{Name: "median", Unit: "ms"}, {Name: "p90", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "from the cache", Unit: "%"},
		{Name: "at the web site", Unit: "/s"}, {Name: "WheelFS", Source: webSource},
	}}
	for _, r := range records {
		for _, part := range r.parts(p.whole(r.webWay)) {
			s := r.sum(part, p.whole(r.webWay))
			service.Add(report.Text(r.Name), report.Text(part.when), report.Text(part.who), report.Number(float64(s.good)/s.seconds), report.Number(s.sites*p.linkAllows()),
				report.Number(float64(s.failed)/s.seconds), report.Number(median(s.took)), report.Number(quantile(s.took, 0.9)), report.Number(quantile(s.took, 0.99)),
				report.Number(100*float64(s.hits)/float64(s.good)), report.Number(float64(s.origin)/s.seconds), r.theirs(part))
		}
	}
	return report.Result{
		Title: "webcache: httpd proxies share a disk cache over all sites",
		SetUp: fmt.Sprintf("%d sites 100 ms apart have %d proxies each (Apache httpd with mod_cache_disk), and every pair of sites has 6 Mbit/s. All proxies keep their cache in one directory. "+
			"A client at 10 Mbit/s and 20 ms from each site asks its proxies for random pages of %d of %d bytes, %d at a time. The web site has %g kbit/s and is 100 ms away. "+
			"The first way begins with an empty cache, the others with what is there. With failures, every %v one site is off for %v to all but its client.",
			p.sites, p.proxies, p.pages.Count, p.pages.Bytes, p.atOnce, p.origin, p.every, p.off),
		Notes: []string{
			"httpd 2.4 takes a cached page only where header and body are of the same device; a small library tells it the same device for every mount.",
			"The last column is of another system on other machines: with failures, its web site is 150 ms away.",
		},
		Tables: []report.Table{service, webOriginTable(p, records)}, Plots: webPlots(p, records), Figures: records,
	}
}

// theirs is what the paper shows of a part.
func (r webRecord) theirs(part webPart) report.Cell {
	switch {
	case !r.off || part.who != "all":
		return report.None()
	case r.key == "eventual":
		return report.Text("about 100/s throughout")
	case part.when == "a site off":
		return report.Text("collapses; the web site's load rises")
	}
	return report.None()
}

// quietAfter is how many seconds after the beginning the web site's load ended:
// from then on it heard nothing for webQuiet. NaN if it never did.
func (r webRecord) quietAfter(whole time.Duration) float64 {
	last := r.began
	for _, e := range append(slices.Clone(r.origin), load.OriginEvent{At: r.began.Add(whole).UnixMicro()}) {
		at := time.UnixMicro(e.At)
		if at.Sub(last) >= webQuiet {
			return last.Sub(r.began).Seconds()
		}
		last = at
	}
	return nan()
}

func webOriginTable(p webPlan, records []webRecord) report.Table {
	t := report.Table{Name: "origin", Title: fmt.Sprintf("What came to the web site (its load has ended where it hears nothing for %v)", webQuiet), Columns: []report.Column{
		{Name: "way"}, {Name: "requests"}, {Name: "pages asked for"}, {Name: "requests a page"}, {Name: "most for one page"}, {Name: "sent", Unit: "MB"},
		{Name: "load ended after", Unit: "s"}, {Name: "wrong pages"}, {Name: "WheelFS", Source: webSource},
	}}
	for _, r := range records {
		pages, most := map[int]int{}, 0
		for _, e := range r.origin {
			pages[e.Page]++
			most = max(most, pages[e.Page])
		}
		theirs := report.None()
		if !r.off {
			theirs = report.Text("twice CoralCDN's time until its load is zero")
		}
		t.Add(report.Text(r.Name), report.Count(len(r.origin)), report.Count(len(pages)), report.Number(float64(len(r.origin))/float64(len(pages))), report.Count(most),
			report.Number(float64(r.bytes)/1e6), report.Number(r.quietAfter(p.whole(r.webWay))), report.Count(r.wrong()), theirs)
	}
	return t
}

func webPlots(p webPlan, records []webRecord) []report.Plot {
	service := report.Plot{Name: "service", Title: "Pages that all clients got", X: report.Axis{Label: "time, s", FromZero: true}, Y: report.Axis{Label: "pages, /s", FromZero: true},
		Marks: []report.Mark{{Name: "the clients' links allow", Y: float64(p.sites) * p.linkAllows()}}}
	origin := report.Plot{Name: "origin", Title: "Requests at the web site", X: report.Axis{Label: "time, s", FromZero: true}, Y: report.Axis{Label: "requests, /s", FromZero: true}}
	latency := report.Plot{Name: "latency", Title: "Share of the pages that took at most so long", X: report.Axis{Label: "time, ms", Log: true}, Y: report.Axis{Label: "share of the pages", FromZero: true}}
	banded := false
	for _, r := range records {
		whole := p.whole(r.webWay)
		var good []time.Time
		var took []float64
		for _, events := range r.requests {
			for _, e := range events {
				if e.Err == "" {
					good, took = append(good, e.End()), append(took, float64(e.Took)/1000)
				}
			}
		}
		var came []time.Time
		for _, e := range r.origin {
			came = append(came, time.UnixMicro(e.At))
		}
		service.Lines = append(service.Lines, perSecond(r.Name, good, r.began, whole))
		origin.Lines = append(origin.Lines, perSecond(r.Name, came, r.began, whole))
		latency.Lines = append(latency.Lines, thin(cumulative(r.Name, took)))
		for _, o := range r.outages {
			if band := (report.Band{Name: "a site off, with failures", From: o.Off.Sub(r.began).Seconds(), To: o.Back.Sub(r.began).Seconds()}); !banded {
				service.Bands, origin.Bands = append(service.Bands, band), append(origin.Bands, band)
			}
		}
		banded = banded || len(r.outages) > 0
	}
	return []report.Plot{service, origin, latency}
}

// perSecond is how often something was in each second.
func perSecond(name string, times []time.Time, began time.Time, whole time.Duration) report.Line {
	l := report.Line{Name: name, Y: make(report.Values, int(whole/time.Second))}
	for i := range l.Y {
		l.X = append(l.X, float64(i))
	}
	for _, t := range times {
		if i := int(t.Sub(began) / time.Second); !t.Before(began) && i < len(l.Y) {
			l.Y[i]++
		}
	}
	return l
}

// thin keeps some hundred points of a line, its ends among them.
func thin(l report.Line) report.Line {
	const most = 400
	step := len(l.X)/most + 1
	out := report.Line{Name: l.Name}
	for i := 0; i < len(l.X); i++ {
		if i%step == 0 || i == len(l.X)-1 {
			out.X, out.Y = append(out.X, l.X[i]), append(out.Y, l.Y[i])
		}
	}
	return out
}
