package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/report"
)

// What others' figures of size are from.
const (
	mamsSizes   = "CFS with MAMS, Table 2: 5.4 to 6.8 s from 0 to 1 million files, of which 5 s are its session; lease of 5 s (docs/experiments.md, Figures of others)"
	namenodeRAM = "HDFS's NameNode: about 150 bytes of memory a file (docs/experiments.md, Figures of others)"
)

// namenodeBytes is what one file takes of a NameNode's memory.
const namenodeBytes = 150

func scaleReport(p scalePlan, rows []scaleRow) report.Result {
	return report.Result{
		Title: "scale: a tree that grows to very many files",
		SetUp: fmt.Sprintf("Three sites have a node each, 1 ms apart, with a copy of every slice; lease %v. A mount beside the active makes empty files by %d workers, %d in a folder. "+
			"At each size: a listing of the largest folder through a mount without caches; what the active's node holds; then %d writers at another site work in the tree while a snapshot of the whole tree is made, "+
			"the node is killed, and %v later started again.", p.lease, p.workers, p.each, p.writers, p.away()),
		Notes: []string{
			"The files are empty, so that metadata alone counts. All nodes share the processors and the disk of one machine.",
			"Memory is what no file backs, after a listing; caches for blocks of metadata are in it, and have a bound.",
			"The journal holds what is not yet in the metadata's files; its size has a bound and does not grow with the tree.",
			"A snapshot's gap is read from a window of half the calm time, beside one of the same length before it.",
		},
		Tables: []report.Table{scaleHeld(rows), scaleTook(rows)},
		Plots:  []report.Plot{scaleSpace(rows), scalePauses(rows)}, Figures: rows,
	}
}

// perFile is a number of bytes for each file.
func (r scaleRow) perFile(bytes int64) float64 { return float64(bytes) / float64(r.Files) }

// scaleHeld is the table of what a node holds.
func scaleHeld(rows []scaleRow) report.Table {
	t := report.Table{Name: "held", Title: "What the node of the active holds", Columns: []report.Column{
		{Name: "files"}, {Name: "slices"}, {Name: "made", Unit: "/s"}, {Name: "metadata", Unit: "MB"}, {Name: "a file", Unit: "B"}, {Name: "journal", Unit: "MB"},
		{Name: "memory", Unit: "MB"}, {Name: "NameNode, memory in MB", Source: namenodeRAM},
	}}
	for _, r := range rows {
		t.Add(report.Count(r.Files), report.Count(r.Slices), report.Number(float64(r.Added)/r.Made), report.Number(float64(r.Meta)/1e6), report.Number(r.perFile(r.Meta)),
			report.Number(float64(r.Journal)/1e6), report.Number(float64(r.Memory)/1e6), report.Number(float64(r.Files)*namenodeBytes/1e6))
	}
	return t
}

// scaleTook is the table of what took how long.
func scaleTook(rows []scaleRow) report.Table {
	t := report.Table{Name: "took", Title: "What takes how long", Columns: []report.Column{
		{Name: "files"}, {Name: "objects of the writers' slice"}, {Name: "names listed"}, {Name: "listing", Unit: "names/s"}, {Name: "snapshot", Unit: "ms"},
		{Name: "longest gap before", Unit: "ms"}, {Name: "longest gap beside", Unit: "ms"}, {Name: "takeover", Unit: "s"}, {Name: "MAMS, takeover in s", Source: mamsSizes},
		{Name: "start", Unit: "s"}, {Name: "all normal", Unit: "s"}, {Name: "changes acknowledged"}, {Name: "lost"},
	}}
	for _, r := range rows {
		whole := report.None()
		if r.Whole != nil {
			whole = report.Number(*r.Whole)
		}
		t.Add(report.Count(r.Files), report.Count(int(r.Objects)), report.Count(r.Listed.Names), report.Number(float64(r.Listed.Names)/r.Listed.Seconds), report.Number(r.Snapshot),
			report.Number(r.Calm), report.Number(r.Beside), report.Number(r.Takeover), report.Text("5.4-6.8"), report.Number(r.Ready), whole,
			report.Count(r.Verdict.Acknowledged), report.Count(len(r.Verdict.Lost)))
	}
	return t
}

// scaleSpace is the plot of what a node holds.
func scaleSpace(rows []scaleRow) report.Plot {
	disk, memory := report.Line{Name: "metadata on disk"}, report.Line{Name: "memory"}
	theirs := report.Line{Name: "NameNode, memory (not measured here)", Dashed: true}
	for _, r := range rows {
		x := float64(r.Files)
		disk.X, disk.Y = append(disk.X, x), append(disk.Y, float64(r.Meta)/1e6)
		memory.X, memory.Y = append(memory.X, x), append(memory.Y, float64(r.Memory)/1e6)
		theirs.X, theirs.Y = append(theirs.X, x), append(theirs.Y, x*namenodeBytes/1e6)
	}
	return report.Plot{Name: "held", Title: "What the node of the active holds", X: report.Axis{Label: "files of the tree", Log: true}, Y: report.Axis{Label: "MB", Log: true},
		Lines: []report.Line{disk, memory, theirs}}
}

// scalePauses is the plot of a takeover and a start.
func scalePauses(rows []scaleRow) report.Plot {
	takeover, start, whole := report.Line{Name: "takeover: no change acknowledged"}, report.Line{Name: "start: the node is ready"}, report.Line{Name: "start: all members normal"}
	for _, r := range rows {
		x := float64(r.Files)
		takeover.X, takeover.Y = append(takeover.X, x), append(takeover.Y, r.Takeover)
		start.X, start.Y = append(start.X, x), append(start.Y, r.Ready)
		if r.Whole != nil {
			whole.X, whole.Y = append(whole.X, x), append(whole.Y, *r.Whole)
		}
	}
	return report.Plot{Name: "pauses", Title: "After the node of the active was killed", X: report.Axis{Label: "files of the tree", Log: true}, Y: report.Axis{Label: "s", FromZero: true},
		Lines: []report.Line{takeover, start, whole}}
}
