package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// mailSource is where the figures of WheelFS are from.
const mailSource = "WheelFS's paper, Figures 9 and 10 (docs/experiments.md, mail)"

// What the paper reports at its highest load, requests a second of all sites.
const (
	paperStatic = 112
	paperMail   = 50
)

// mailSum is what the clients of a round met.
type mailSum struct {
	sent, sessions, failed int       // that ended in the round's time
	sendTook, readTook     []float64 // ms, of all good ones
	all                    int       // good ones, those that ended later too
}

func (p mailPlan) sum(r mailRound) (s mailSum) {
	end := r.began.Add(p.each)
	for _, e := range r.events {
		took, inTime := float64(e.Took)/1000, !e.End().After(end)
		switch {
		case e.Err != "":
			s.failed++
			continue
		case e.Kind == load.MailSend:
			s.sendTook = append(s.sendTook, took)
			s.sent += one(inTime)
		default:
			s.readTook = append(s.readTook, took)
			s.sessions += one(inTime)
		}
		s.all++
	}
	return s
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// requests is how many requests a second ended well.
func (p mailPlan) requests(r mailRound) float64 {
	s := p.sum(r)
	return float64(s.sent+s.sessions) / p.each.Seconds()
}

// best is the most requests a second with any number of clients.
func (p mailPlan) best(r mailRecord) (most float64, level int) {
	for _, round := range r.rounds {
		if n := p.requests(round); n > most || level == 0 {
			most, level = n, round.level
		}
	}
	return most, level
}

func mailReport(p mailPlan, records []mailRecord) report.Result {
	return report.Result{
		Title: "mail: mailboxes of SMTP and IMAP servers on the mounts and on local disks",
		SetUp: fmt.Sprintf("%d sites 100 ms apart, each with a link of %g kbit/s, have %d servers each (Exim for SMTP, Dovecot for IMAP) and %d hosts with clients. "+
			"There are %d users, spread evenly over the sites. A client has one request in flight: %g %% are messages to a random user by a random server of the client's site, "+
			"the others are sessions of IMAP that fetch and remove all messages of a random user of the client's site. Each number of clients has %v.",
			p.sites, p.rate, p.servers, p.hosts, p.users.Count, 100-100*p.reads, p.each),
		Notes: []string{
			"SMTP answers when the message is in the mailbox or at the server that has the mailbox; what could not be delivered at once is delivered later, and counted as deferred.",
			"What crosses the wide area includes what the nodes and mounts say to each other without load, in both ways.",
			"Static partition: each mailbox is on the local disk of one server of the user's site. Cartwheel: every server has all mailboxes on its mount.",
			"The figures of WheelFS are of other machines and other mail servers.",
		},
		Tables: []report.Table{mailBest(p, records), mailService(p, records), mailCost(records), mailOperations(records), mailKeptTable(records)},
		Plots:  mailPlots(p, records), Figures: records,
	}
}

func mailBest(p mailPlan, records []mailRecord) report.Table {
	t := report.Table{Name: "best", Title: "The highest throughput", Columns: []report.Column{
		{Name: "way"}, {Name: "requests", Unit: "/s"}, {Name: "clients at each site"}, {Name: "of static", Unit: "%"}, {Name: "to reach", Unit: "%"},
		{Name: "wide area without load", Unit: "kB/s"},
		{Name: "WheelFS, requests", Unit: "/s", Source: mailSource}, {Name: "WheelFS, of static", Unit: "%", Source: mailSource},
	}}
	static := nan()
	for _, r := range records {
		most, level := p.best(r)
		if r.divided {
			static = most
			t.Add(report.Text(r.Name), report.Number(most), report.Count(level), report.None(), report.None(), report.Number(r.idle/1000), report.Count(paperStatic), report.None())
			continue
		}
		t.Add(report.Text(r.Name), report.Number(most), report.Count(level), report.Number(100*most/static), report.Count(mailReach), report.Number(r.idle/1000),
			report.Count(paperMail), report.Number(100.0*paperMail/paperStatic))
	}
	return t
}

// mailReach is the share of the static partition's throughput to reach, percent.
const mailReach = 90

func mailService(p mailPlan, records []mailRecord) report.Table {
	t := report.Table{Name: "service", Title: "What the clients got", Columns: []report.Column{
		{Name: "way"}, {Name: "clients at each site"}, {Name: "messages", Unit: "/s"}, {Name: "IMAP sessions", Unit: "/s"}, {Name: "failed"},
		{Name: "SMTP median", Unit: "ms"}, {Name: "SMTP p90", Unit: "ms"}, {Name: "IMAP median", Unit: "ms"}, {Name: "IMAP p90", Unit: "ms"},
		{Name: "wide area", Unit: "kB/request"}, {Name: "packets", Unit: "/request"}, {Name: "links in use", Unit: "%"},
	}}
	for _, r := range records {
		for _, round := range r.rounds {
			s := p.sum(round)
			all := float64(s.all)
			capacity := p.rate * 1000 / 8 * float64(p.sites) * round.took.Seconds()
			t.Add(report.Text(r.Name), report.Count(round.level), report.Number(float64(s.sent)/p.each.Seconds()), report.Number(float64(s.sessions)/p.each.Seconds()), report.Count(s.failed),
				report.Number(median(s.sendTook)), report.Number(quantile(s.sendTook, 0.9)), report.Number(median(s.readTook)), report.Number(quantile(s.readTook, 0.9)),
				report.Number(float64(round.wan.Bytes)/1000/all), report.Number(float64(round.wan.Packets)/all), report.Number(100*float64(round.wan.Bytes)/capacity))
		}
	}
	return t
}

func mailCost(records []mailRecord) report.Table {
	t := report.Table{Name: "cost", Title: "What a request costs alone", Columns: []report.Column{
		{Name: "way"}, {Name: "request"}, {Name: "median", Unit: "ms"}, {Name: "operations of the kernel"}, {Name: "round trips to other sites"}, {Name: "wide area", Unit: "kB"},
		{Name: "packets"}, {Name: "WheelFS, round trips", Source: mailSource},
	}}
	for _, r := range records {
		for _, probe := range r.probes {
			n := float64(probe.Requests)
			operations, trips, theirs := report.None(), report.None(), report.None()
			if !r.divided {
				all, waits := probe.operations()
				operations, trips, theirs = report.Number(float64(all)/n), report.Number(float64(waits)/n), report.None()
				if probe.What == mailFurther {
					theirs = report.Count(paperTrips)
				}
			}
			t.Add(report.Text(r.Name), report.Text(probe.What), report.Number(median(probe.Took)), operations, trips,
				report.Number(float64(probe.WAN.Bytes)/1000/n), report.Number(float64(probe.WAN.Packets)/n), theirs)
		}
	}
	return t
}

// paperTrips is how many remote procedure calls to other sites a message takes.
const paperTrips = 11

// mailOperations tells where the time of a message goes.
func mailOperations(records []mailRecord) report.Table {
	t := report.Table{Name: "operations", Title: "What the server's mount does for one request", Columns: []report.Column{
		{Name: "request"}, {Name: "operation"}, {Name: "count"}, {Name: "round trips to other sites"}, {Name: "most for one"}, {Name: "out", Unit: "kB"}, {Name: "in", Unit: "kB"},
	}}
	for _, r := range records {
		for _, probe := range r.probes {
			n := float64(probe.Requests)
			for _, c := range probe.Counts {
				t.Add(report.Text(probe.What), report.Text(c.Kind), report.Number(float64(c.Count)/n), report.Number(float64(c.WAN)/n), report.Count(c.MostWAN),
					report.Number(float64(c.Out)/1000/n), report.Number(float64(c.In)/1000/n))
			}
		}
	}
	return t
}

func mailKeptTable(records []mailRecord) report.Table {
	t := report.Table{Name: "kept", Title: "What became of the messages", Columns: []report.Column{
		{Name: "way"}, {Name: "acknowledged"}, {Name: "deferred"}, {Name: "removed by IMAP"}, {Name: "in mailboxes"}, {Name: "lost"}, {Name: "twice"}, {Name: "delivered again"}, {Name: "at another user"},
		{Name: "wrong"}, {Name: "removed and there"},
	}}
	for _, r := range records {
		k := r.kept
		t.Add(report.Text(r.Name), report.Count(k.Acknowledged), report.Count(r.deferred), report.Count(k.Removed), report.Count(k.Found), report.Count(k.Lost), report.Count(k.Twice),
			report.Count(k.Again), report.Count(k.Misplaced), report.Count(k.Wrong), report.Count(k.Returned))
	}
	return t
}

func mailPlots(p mailPlan, records []mailRecord) []report.Plot {
	clients := report.Axis{Label: "clients at each site", FromZero: true}
	through := report.Plot{Name: "throughput", Title: "Requests that ended well", X: clients, Y: report.Axis{Label: "requests, /s", FromZero: true}}
	latency := report.Plot{Name: "latency", Title: "Median time of a message", X: clients, Y: report.Axis{Label: "time, ms", FromZero: true}}
	for _, r := range records {
		many, slow := report.Line{Name: r.Name}, report.Line{Name: r.Name}
		for _, round := range r.rounds {
			many.X, many.Y = append(many.X, float64(round.level)), append(many.Y, p.requests(round))
			slow.X, slow.Y = append(slow.X, float64(round.level)), append(slow.Y, median(p.sum(round).sendTook))
		}
		through.Lines, latency.Lines = append(through.Lines, many), append(latency.Lines, slow)
	}
	return []report.Plot{through, latency}
}
