package experiments

import (
	"fmt"

	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// treeGoal is what copying with 22 ms to the home is to reach, in files a
// second.
func treeGoal(r treeRow) report.Cell {
	switch {
	case r.Work != load.CopyTree || r.RTT != 22:
		return report.None()
	case r.Workers > 0:
		return report.Number(300)
	}
	return report.Number(25)
}

func treeReport(rows []treeRow, tree load.Tree) report.Result {
	t := report.Table{Name: "speed", Title: "Speed and round trips", Columns: []report.Column{
		{Name: "RTT", Unit: "ms"}, {Name: "replicas"}, {Name: "how"}, {Name: "work"}, {Name: "speed", Unit: "files/s"}, {Name: "took", Unit: "s"},
		{Name: "WAN round trips", Unit: "per file"}, {Name: "JuiceFS, metadata", Unit: "op/s", Source: juiceSource}, {Name: "to reach", Unit: "files/s"},
	}}
	trips := report.Table{Name: "trips", Title: "WAN round trips by kind of file operation", Columns: []report.Column{
		{Name: "RTT", Unit: "ms"}, {Name: "replicas"}, {Name: "how"}, {Name: "work"}, {Name: "operation"}, {Name: "count"}, {Name: "round trips"},
		{Name: "each"}, {Name: "most"},
	}}
	for _, r := range rows {
		theirs := report.None()
		if r.RTT == 22 && r.Workers == 0 && (r.Work == load.CopyTree || r.Work == load.DeleteTree) {
			theirs = report.Text("5-10")
		}
		t.Add(report.Number(r.RTT), report.Text(r.Layout), report.Text(r.how()), report.Text(string(r.Work)), report.Number(r.PerSecond()), report.Number(r.Seconds),
			report.Number(r.trips()), theirs, treeGoal(r))
		for _, c := range r.Counts {
			if c.WAN > 0 {
				trips.Add(report.Number(r.RTT), report.Text(r.Layout), report.Text(r.how()), report.Text(string(r.Work)), report.Text(c.Kind), report.Count(c.Count),
					report.Count(c.WAN), report.Number(float64(c.WAN)/float64(max(1, c.Count))), report.Count(c.MostWAN))
			}
		}
	}
	result := report.Result{
		Title: "kerneltree: a source tree whose home is far away",
		SetUp: fmt.Sprintf("%d files in %d folders, %.1f MB. The home has three nodes, the site of the mount one; caches are cold before each work. "+
			"One by one: cp -r, ls -lR, grep -r, rm -r; else so many workers.", len(tree.Files), len(tree.Folders), float64(tree.Bytes)/1e6),
		Tables: []report.Table{t}, Plots: treePlots(rows), Figures: rows,
	}
	if len(trips.Rows) > 0 {
		result.Tables = append(result.Tables, trips)
	} else {
		result.Notes = append(result.Notes, "this version's mounts do not count round trips")
	}
	return result
}

// how says who did the work.
func (r treeRow) how() string {
	if r.Workers == 0 {
		return "one by one"
	}
	return fmt.Sprintf("%d workers", r.Workers)
}

// treePlots are the speeds and the round trips as bars: a group a work, a bar
// a way.
func treePlots(rows []treeRow) []report.Plot {
	var groups []string
	for _, w := range load.TreeWorks() {
		groups = append(groups, string(w))
	}
	speed := report.Plot{Name: "speed", Title: "Speed of works on a source tree", Y: report.Axis{Label: "files/s", Log: false, FromZero: true}, Groups: groups}
	trips := report.Plot{Name: "trips", Title: "WAN round trips per file", Y: report.Axis{Label: "round trips per file", FromZero: true}, Groups: groups}
	var order []string
	speeds, counts := map[string]report.Values{}, map[string]report.Values{}
	for _, r := range rows {
		name := fmt.Sprintf("%g ms, %s, %s", r.RTT, r.Layout, r.how())
		if speeds[name] == nil {
			order = append(order, name)
		}
		speeds[name], counts[name] = append(speeds[name], r.PerSecond()), append(counts[name], r.trips())
	}
	for _, name := range order {
		speed.Bars = append(speed.Bars, report.Bar{Name: name, Y: speeds[name]})
		trips.Bars = append(trips.Bars, report.Bar{Name: name, Y: counts[name]})
	}
	if len(rows) > 0 && rows[0].Counts != nil {
		return []report.Plot{speed, trips}
	}
	return []report.Plot{speed}
}
