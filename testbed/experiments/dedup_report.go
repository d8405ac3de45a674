package experiments

import (
	"fmt"
	"time"

	"cartwheel.dev/node/chunk"
	"cartwheel.dev/testbed/report"
)

// hydraDedup is where the figures of HydraFS are from.
const hydraDedup = "HydraFS's section on duplicates, Figure 6: 32 GB with 0 to 80 % duplicates, chunks of 64 KB in the mean (docs/experiments.md, Figures of others)"

func dedupReport(p dedupPlan, found dedupFound) report.Result {
	return report.Result{
		Title: "dedup: what chunks save, and how fast they are cut",
		SetUp: fmt.Sprintf("%d trees are cut into chunks, and chunks that are equal are stored once: each file by itself, as the product stores it, and the files of each tree joined to one archive. "+
			"The product's chunks are content-defined, of %d to %d KiB; the others end at multiples of their size. One goroutine cuts and names (BLAKE3) what is in memory.",
			len(p.trees), chunk.MinSize>>10, chunk.MaxSize>>10),
		Notes: []string{
			"A tree adds what none of those above it has. What describes the files (names, manifests) is not counted.",
		},
		Tables: []report.Table{dedupCuts(found.Rows), dedupTrees(found.Trees)}, Plots: []report.Plot{dedupSaved(found.Rows), dedupSpeeds(found.Rows)}, Figures: found,
	}
}

// saved is the share that is not stored, in percent.
func (r dedupRow) saved() float64 { return 100 * (1 - float64(r.Stored)/float64(r.Bytes)) }

// mean is the mean size of a chunk, in KiB.
func (r dedupRow) mean() float64 { return float64(r.Bytes) / float64(r.Chunks) / 1024 }

// speed is MB a second over a time; NaN where it took too short to tell.
func (r dedupRow) speed(took time.Duration) float64 {
	if took < time.Millisecond {
		return nan()
	}
	return float64(r.Bytes) / 1e6 / took.Seconds()
}

func dedupCuts(rows []dedupRow) report.Table {
	t := report.Table{Name: "cuts", Title: "All trees", Columns: []report.Column{
		{Name: "stored as"}, {Name: "chunks"}, {Name: "mean chunk", Unit: "KiB"}, {Name: "count"}, {Name: "content", Unit: "MB"}, {Name: "stored", Unit: "MB"},
		{Name: "saved", Unit: "%"}, {Name: "ratio"}, {Name: "cutting alone", Unit: "MB/s"}, {Name: "cutting and naming", Unit: "MB/s"}, {Name: "HydraFS", Source: hydraDedup},
	}}
	for _, r := range rows {
		cutting, theirs := report.None(), report.None()
		if r.Fixed == 0 {
			cutting, theirs = report.Number(r.speed(r.Cutting)), report.Text("writes speed up with the duplicates, within 12 % of the raw store")
		}
		t.Add(report.Text(string(r.Way)), report.Text(r.Name), report.Number(r.mean()), report.Count(r.Chunks), report.Number(float64(r.Bytes)/1e6), report.Number(float64(r.Stored)/1e6),
			report.Number(r.saved()), report.Number(float64(r.Bytes)/float64(r.Stored)), cutting, report.Number(r.speed(r.Cutting+r.Naming)), theirs)
	}
	return t
}

func dedupTrees(trees []dedupTree) report.Table {
	t := report.Table{Name: "trees", Title: "What each tree adds, with the product's chunks", Columns: []report.Column{
		{Name: "stored as"}, {Name: "tree"}, {Name: "files"}, {Name: "content", Unit: "MB"}, {Name: "adds", Unit: "MB"}, {Name: "of its content", Unit: "%"},
	}}
	for _, one := range trees {
		share := report.None()
		if one.Bytes > 0 {
			share = report.Number(100 * float64(one.Added) / float64(one.Bytes))
		}
		t.Add(report.Text(string(one.Way)), report.Text(one.Tree), report.Count(one.Files), report.Number(float64(one.Bytes)/1e6), report.Number(float64(one.Added)/1e6), share)
	}
	return t
}

// dedupPlot has a line of fixed chunks for each way, and a point for the product's.
func dedupPlot(plot report.Plot, rows []dedupRow, of func(dedupRow) float64) report.Plot {
	plot.X = report.Axis{Label: "mean chunk, KiB", Log: true}
	for _, way := range dedupWays() {
		fixed, product := report.Line{Name: "fixed, " + string(way), Dashed: true}, report.Line{Name: "the product's, " + string(way), Points: true}
		for _, r := range rows {
			l := &fixed
			if r.Way != way {
				continue
			}
			if r.Fixed == 0 {
				l = &product
			}
			l.X, l.Y = append(l.X, r.mean()), append(l.Y, of(r))
		}
		plot.Lines = append(plot.Lines, fixed, product)
	}
	return plot
}

func dedupSaved(rows []dedupRow) report.Plot {
	return dedupPlot(report.Plot{Name: "saved", Title: "What is not stored again", Y: report.Axis{Label: "saved, %", FromZero: true}}, rows, dedupRow.saved)
}

func dedupSpeeds(rows []dedupRow) report.Plot {
	return dedupPlot(report.Plot{Name: "speed", Title: "Cutting and naming, by one goroutine", Y: report.Axis{Label: "speed, MB/s", FromZero: true}}, rows,
		func(r dedupRow) float64 { return r.speed(r.Cutting + r.Naming) })
}
