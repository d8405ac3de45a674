package experiments

import (
	"fmt"
	"slices"

	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

// distributionSource is where the figures of others are from.
const distributionSource = "WheelFS's paper, 50 MB to 15 nodes, median: WheelFS with .Hotspot and .WholeFile, BitTorrent, one direct download, 15 at once (docs/experiments.md, Figures of others)"

// theirs are the figures of others for 50 MB, in seconds.
func (w distributionWay) theirs() report.Cell {
	switch w.key {
	case "one":
		return report.Text("direct: 73")
	case "hotspot":
		return report.Text("WheelFS: 168")
	case "direct":
		return report.Text("direct: 892")
	case "bittorrent":
		return report.Text("BitTorrent: 249")
	}
	return report.None()
}

func distributionReport(p distributionPlan, t *topology.Topology, rows []distributionRow) report.Result {
	table := report.Table{Name: "times", Title: "How long hosts take to read the file", Columns: []report.Column{
		{Name: "who reads"}, {Name: "hosts"}, {Name: "first", Unit: "s"}, {Name: "median", Unit: "s"}, {Name: "last", Unit: "s"},
		{Name: "over the wide area", Unit: "MB"}, {Name: "copies for each site"}, {Name: "others, 50 MB", Unit: "s", Source: distributionSource},
	}}
	for _, r := range rows {
		table.Add(report.Text(r.Name), report.Count(len(r.Read)), report.Number(slices.Min(r.Read)/1000), report.Number(median(r.Read)/1000),
			report.Number(slices.Max(r.Read)/1000), report.Number(float64(r.Bytes)/1e6), report.Number(float64(r.Bytes)/float64(p.bytes)/float64(r.Sites)), r.theirs())
	}
	return report.Result{
		Title: "distribution: one file to all hosts",
		SetUp: fmt.Sprintf("A file of %d bytes with %d replica(s) is at the last site of %s. Each way has a file of its own. All readers begin at once, with cold caches, and compare what they read with what was written.",
			p.bytes, p.replicas, t.Name),
		Notes: []string{
			"Bytes over the wide area count IP headers, what TCP sends again, and what nodes say to each other meanwhile.",
			"BitTorrent is libtorrent, with pieces of 64 KiB, uploads to all peers at once, and every host a peer of every other from the start. HTTP and BitTorrent keep the file on local disks.",
		},
		Tables: []report.Table{table}, Plots: []report.Plot{distributionPlot(rows)}, Figures: rows,
	}
}

// distributionPlot is how many of the hosts have the file after a time.
func distributionPlot(rows []distributionRow) report.Plot {
	p := report.Plot{Name: "hosts", Title: "Hosts that have the file", X: report.Axis{Label: "seconds", FromZero: true}, Y: report.Axis{Label: "hosts", FromZero: true}}
	for _, r := range rows {
		line := report.Line{Name: r.Name, X: report.Values{0}, Y: report.Values{0}}
		for i, ms := range slices.Sorted(slices.Values(r.Read)) {
			line.X, line.Y = append(line.X, ms/1000, ms/1000), append(line.Y, float64(i), float64(i+1))
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
