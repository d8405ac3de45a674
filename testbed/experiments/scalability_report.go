package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/report"
)

// scalabilitySource is where the figures of WheelFS are from.
const scalabilitySource = "WheelFS's Figure 3, median time of 1 MB: WheelFS and NFSv4 from one server (docs/experiments.md, Figures of others)"

func scalabilityReport(p scalabilityPlan, rows []scalabilityRow) report.Result {
	t := report.Table{Name: "scale", Title: "Clients that read files of each other at once", Columns: []report.Column{
		{Name: "files at"}, {Name: "clients"}, {Name: "median of a file", Unit: "s"}, {Name: "p90", Unit: "s"}, {Name: "of the fewest clients' median", Unit: "%"},
		{Name: "all clients", Unit: "Mbit/s"}, {Name: "the links allow", Unit: "Mbit/s"}, {Name: "WheelFS, NFSv4", Source: scalabilitySource},
	}}
	speed := report.Plot{
		Name: "throughput", Title: "What all clients read together", X: report.Axis{Label: "clients", FromZero: true},
		Y: report.Axis{Label: "throughput, Mbit/s", FromZero: true}, Marks: []report.Mark{{Name: "one site's link", Y: p.mbit}},
	}
	times := report.Plot{
		Name: "times", Title: "Median time of one file", X: report.Axis{Label: "clients", FromZero: true}, Y: report.Axis{Label: "time, s", FromZero: true},
	}
	for _, l := range scalabilityLayouts() {
		fast, slow := report.Line{Name: l.Name}, report.Line{Name: l.Name}
		theirs := "flat"
		if l.one {
			theirs = "rises past about 100 clients"
		}
		of := l.of(rows)
		for _, r := range of {
			links := p.mbit
			if !l.one {
				links *= float64(r.Clients) // each client's own link; the files come over those of all sites
			}
			t.Add(report.Text(l.Name), report.Count(r.Clients), report.Number(median(r.Read)/1000), report.Number(quantile(r.Read, 0.9)/1000),
				report.Number(100*median(r.Read)/median(of[0].Read)), report.Number(r.Mbit), report.Number(links), report.Text(theirs))
			fast.X, fast.Y = append(fast.X, float64(r.Clients)), append(fast.Y, r.Mbit)
			slow.X, slow.Y = append(slow.X, float64(r.Clients)), append(slow.Y, median(r.Read)/1000)
		}
		speed.Lines, times.Lines = append(speed.Lines, fast), append(times.Lines, slow)
	}
	return report.Result{
		Title: "scalability: clients read files of each other",
		SetUp: fmt.Sprintf("%d owners at sites of their own have a directory of %d files of %d bytes each, with %d replica(s); once at their owners' sites, and once all at one server. "+
			"Each client reads %d random files of other owners one after another, with cold caches; all clients begin at once. Each site has %g Mbit/s, and sites are %g ms apart.",
			p.owners, p.files, p.bytes, p.replicas, p.files, p.mbit, p.rtt),
		Notes:  []string{"The one server is a node of Cartwheel, not NFS, and runs in the same lab."},
		Tables: []report.Table{t}, Plots: []report.Plot{speed, times}, Figures: rows,
	}
}
