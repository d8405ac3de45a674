package experiments

import (
	"fmt"
	"maps"
	"slices"

	"cartwheel.dev/testbed/report"
)

// volumesSource is where BeanFS's figure is from, and beanfsMail that figure: operations
// a second of its e-mail.
const (
	beanfsMail    = 1400
	volumesSource = "BeanFS's section 7.2: 160,000 volumes, 125 million files, 16 clients, bound by disks (docs/experiments.md, Figures of others)"
)

func volumesReport(p volumesPlan, rows []volumesRow) report.Result {
	return report.Result{
		Title: "volumes: small files in write-once volumes and in ordinary directories",
		SetUp: fmt.Sprintf("Three nodes with a replica each: at three sites %g ms apart with %g Mbit/s each, and then in one place. The active is at the first. "+
			"A client of the library is beside each node. Single creates are of 4 kB, %d one after the other. E-mail is 4 creates to 2 reads and 3 deletions of BeanFS's sizes. "+
			"Photos are 1 create to 9 reads of files of 16 to 512 kB. %d workers of each client share %d volumes, or directories, for %g s.",
			p.rtt, p.mbit, p.creates, p.workers, p.boxes, p.length.Seconds()),
		Notes: []string{
			"Volumes and directories are in one cluster, one after the other. A create ends when the file is on the disks of all three nodes; in a directory that is when the file is closed.",
			"BeanFS's mix of photos is not known: this one is assumed.",
		},
		Tables: []report.Table{volumesCreates(p, rows), volumesMixes(rows), volumesSplit(rows), volumesChecks(rows)},
		Plots:  []report.Plot{volumesTimes(p, rows), volumesSpread(rows), volumesRates(rows)}, Figures: rows,
	}
}

// isSingle reports whether a row is of single creates.
func (r volumesRow) isSingle() bool {
	return slices.ContainsFunc(volumesWorks(), func(w volumesWork) bool { return w.name == r.Work && w.single })
}

func volumesCreates(p volumesPlan, rows []volumesRow) report.Table {
	t := report.Table{Name: "creates", Title: "One create of 4 kB", Columns: []report.Column{
		{Name: "nodes"}, {Name: "work"}, {Name: "in"}, {Name: "creates"}, {Name: "median", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "one round trip", Unit: "ms"},
	}}
	for _, r := range rows {
		if !r.isSingle() {
			continue
		}
		trip := report.None()
		if r.Net == volumesWide {
			trip = report.Number(p.rtt)
		}
		c := r.creates()
		t.Add(report.Text(string(r.Net)), report.Text(r.Work), report.Text(r.Layout), report.Count(len(c)), report.Number(median(c)), report.Number(quantile(c, 0.99)), trip)
	}
	return t
}

func volumesMixes(rows []volumesRow) report.Table {
	t := report.Table{Name: "mixes", Title: "All clients at once", Columns: []report.Column{
		{Name: "nodes"}, {Name: "work"}, {Name: "in"}, {Name: "operations", Unit: "/s"}, {Name: "content", Unit: "MB/s"}, {Name: "BeanFS", Unit: "/s", Source: volumesSource},
	}}
	for _, r := range rows {
		if r.isSingle() {
			continue
		}
		bytes, theirs := int64(0), report.None()
		for _, e := range r.Each {
			bytes += e.Bytes
		}
		if r.Work == "e-mail" {
			theirs = report.Count(beanfsMail)
		}
		t.Add(report.Text(string(r.Net)), report.Text(r.Work), report.Text(r.Layout), report.Number(r.rate()), report.Number(float64(bytes)/1e6/r.seconds()), theirs)
	}
	return t
}

// parts are a row's clients beside the active and those at other sites; all of them in
// one place.
func (r volumesRow) parts() map[string]volumesRow {
	if r.Net == volumesLocal {
		return map[string]volumesRow{"all": r}
	}
	out := map[string]volumesRow{}
	for _, e := range r.Each {
		where := "far from the active"
		if e.Site == r.Each[0].Site {
			where = "beside the active"
		}
		part := out[where]
		part.Each = append(part.Each, e)
		out[where] = part
	}
	return out
}

func volumesSplit(rows []volumesRow) report.Table {
	t := report.Table{Name: "times", Title: "Times of the operations, by where the client is", Columns: []report.Column{
		{Name: "nodes"}, {Name: "work"}, {Name: "clients"}, {Name: "in"}, {Name: "create, median", Unit: "ms"}, {Name: "p99", Unit: "ms"},
		{Name: "read, median", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "delete, median", Unit: "ms"}, {Name: "p99", Unit: "ms"},
	}}
	for _, r := range rows {
		if r.isSingle() {
			continue
		}
		parts := r.parts()
		for _, where := range slices.Sorted(maps.Keys(parts)) {
			p := parts[where]
			t.Add(report.Text(string(r.Net)), report.Text(r.Work), report.Text(where), report.Text(r.Layout),
				report.Number(median(p.creates())), report.Number(quantile(p.creates(), 0.99)), report.Number(median(p.reads())), report.Number(quantile(p.reads(), 0.99)),
				report.Number(median(p.deletes())), report.Number(quantile(p.deletes(), 0.99)))
		}
	}
	return t
}

func volumesChecks(rows []volumesRow) report.Table {
	t := report.Table{Name: "checks", Title: "What was acknowledged, looked for by other clients", Columns: []report.Column{
		{Name: "nodes"}, {Name: "work"}, {Name: "in"}, {Name: "failed operations"}, {Name: "files looked for"}, {Name: "not as acknowledged"},
	}}
	for _, r := range rows {
		failed, checked := 0, 0
		for _, e := range r.Each {
			failed, checked = failed+e.Failed, checked+e.Checked
		}
		t.Add(report.Text(string(r.Net)), report.Text(r.Work), report.Text(r.Layout), report.Count(failed), report.Count(checked), report.Count(len(r.lost())))
	}
	return t
}

// volumesBars has a group for each work that is to be shown, and a bar for each layout.
func volumesBars(plot report.Plot, rows []volumesRow, shown func(volumesRow) (label string, is bool), figure func(volumesRow) float64) report.Plot {
	for _, plain := range []bool{false, true} {
		bar := report.Bar{Name: volumesLayouts[plain]}
		for _, r := range rows {
			label, is := shown(r)
			if r.Layout != bar.Name || !is {
				continue
			}
			if !plain {
				plot.Groups = append(plot.Groups, label)
			}
			bar.Y = append(bar.Y, figure(r))
		}
		plot.Bars = append(plot.Bars, bar)
	}
	return plot
}

func volumesTimes(p volumesPlan, rows []volumesRow) report.Plot {
	return volumesBars(report.Plot{Name: "creates", Title: "Median time of one create, three sites", Y: report.Axis{Label: "time, ms", FromZero: true},
		Marks: []report.Mark{{Name: "one round trip between sites", Y: p.rtt}}}, rows,
		func(r volumesRow) (string, bool) { return r.Work, r.isSingle() && r.Net == volumesWide }, func(r volumesRow) float64 { return median(r.creates()) })
}

func volumesRates(rows []volumesRow) report.Plot {
	return volumesBars(report.Plot{Name: "rates", Title: "Operations of all clients", Y: report.Axis{Label: "operations a second", FromZero: true}},
		rows, func(r volumesRow) (string, bool) { return string(r.Net) + ": " + r.Work, !r.isSingle() }, volumesRow.rate)
}

// volumesSpread is how the times of single creates over the wide area spread.
func volumesSpread(rows []volumesRow) report.Plot {
	plot := report.Plot{Name: "spread", Title: "Creates at three sites", X: report.Axis{Label: "time of a create, ms", FromZero: true}, Y: report.Axis{Label: "share", FromZero: true, Max: 1}}
	for _, r := range rows {
		if r.Net == volumesWide && r.isSingle() {
			line := cumulative(r.Work+", "+r.Layout, r.creates())
			line.Dashed = r.Layout == volumesLayouts[true]
			plot.Lines = append(plot.Lines, line)
		}
	}
	return plot
}
