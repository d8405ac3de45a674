package experiments

import (
	"context"
	"fmt"
	"strings"

	"cartwheel.dev/testbed/coordinates"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
)

// Sources of the figures that coordinates stand beside.
const (
	vivaldiSource = "plain Vivaldi (steps 0.25 and 0.25, 32 random neighbours, 2,000 rounds) on planetlab490 (docs/experiments.md, Figures of others)"
	ours          = "8-D + height"     // the product's configuration
	planetlab     = "PlanetLabData_18" // the matrix that these figures are of, as its file is named
)

func coordinatesExperiment() experiment.Experiment {
	return experiment.Experiment{
		Name:    "coordinates",
		Summary: "how well network coordinates predict round trips: simulated, with liars, after a partition, at 100,000 nodes, and live",
		Settings: []experiment.Setting{
			{Name: "planetlab", Default: "", Help: "file of a matrix of round trips (synthetic cities)"},
			{Name: "clouds", Default: "", Help: "files of further matrices, joined by commas"},
			{Name: "rounds", Default: "2000", Help: "probes of each node (60 in the short form)"},
			{Name: "large", Default: "100000", Help: "nodes of the large case; 0: none (none in the short form)"},
			{Name: "live", Default: "16", Help: "emulated hosts that find their coordinates live; 0: none (4 in the short form)"},
			{Name: "live-seconds", Default: "180", Help: "how long they have (10 in the short form)"},
		},
		Run: runCoordinates,
	}
}

func runCoordinates(ctx context.Context, env *experiment.Env) error {
	v := map[string]int{}
	for _, name := range []string{"rounds", "large", "live", "live-seconds"} {
		n, err := env.Number(name)
		if err != nil {
			return err
		}
		v[name] = int(n)
	}
	o := coordinates.Options{Seed: env.Seed, PlanetLab: env.Text("planetlab"), Rounds: v["rounds"], Large: v["large"]}
	if list := env.Text("clouds"); list != "" {
		o.Clouds = strings.Split(list, ",")
	}
	if env.Short {
		o.Rounds, o.Large, o.Nodes = min(o.Rounds, 60), 0, 60
		v["live"], v["live-seconds"] = min(v["live"], 4), min(v["live-seconds"], 10)
	}
	topology, err := liveTopology(env, v["live"])
	if err != nil {
		return err
	}
	f, err := env.Folder("coordinates", topology)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Progress, "coordinates: in virtual time")
	simulated, err := coordinates.Run(ctx, o)
	if err != nil {
		return err
	}
	r := coordinatesReport(simulated)
	if topology != nil {
		live, out, err := liveCoordinates(ctx, env, f, topology, v["live-seconds"])
		if err != nil {
			return err
		}
		out.mark(&r) // of the live part; virtual time is never late
		live.addTo(&r)
	}
	return f.Finish(r, env.Out)
}

// coordinatesReport is the part in virtual time.
func coordinatesReport(s coordinates.Result) report.Result {
	t := report.Table{Name: "accuracy", Title: "Accuracy at the end, in virtual time (error: |predicted - true| / true; closest: within 10 % + 2 ms of it)", Columns: []report.Column{
		{Name: "case"}, {Name: "network"}, {Name: "nodes"}, {Name: "median error"}, {Name: "p90 error"},
		{Name: "closest of 3", Unit: "%"}, {Name: "of 8", Unit: "%"}, {Name: "measured first: of 3", Unit: "%"}, {Name: "of 8", Unit: "%"},
		{Name: "two probes: of 3", Unit: "%"}, {Name: "of 8", Unit: "%"},
		{Name: "plain Vivaldi", Unit: "median / p90; of 3 / of 8", Source: vivaldiSource}, {Name: "to reach"},
	}}
	cost := report.Table{Name: "cost", Title: "What it costs a node", Columns: []report.Column{
		{Name: "case"}, {Name: "nodes"}, {Name: "CPU", Unit: "us/sample"}, {Name: "memory", Unit: "KiB"},
		{Name: "coordinate", Unit: "B/frame"}, {Name: "sent", Unit: "B/s"}, {Name: "samples"}, {Name: "CPU in all", Unit: "s"},
	}}
	for _, c := range s.Cases {
		theirs, goal := coordinatesGoals(c)
		a := c.Final
		t.Add(report.Text(c.Name), report.Text(c.Space), report.Count(c.Nodes), report.Number(a.MedianError), report.Number(a.P90Error),
			report.Number(100*a.Coordinates.Of3), report.Number(100*a.Coordinates.Of8), report.Number(100*a.Measured.Of3), report.Number(100*a.Measured.Of8),
			report.Number(100*a.Probed.Of3), report.Number(100*a.Probed.Of8), theirs, goal)
		cost.Add(report.Text(c.Name), report.Count(c.Nodes), report.Number(c.Cost.NsSample/1e3), report.Number(c.Cost.NodeBytes/1024),
			report.Count(c.Cost.FrameBytes), report.Number(c.Cost.TrafficBps),
			report.Count(c.Cost.Samples), report.Number(c.Cost.Seconds))
	}
	return report.Result{
		Title:  "coordinates: how well they predict round trips",
		SetUp:  "Nodes simulated in virtual time, one probe each 5 s; every case but the large one has the same network and seed. Costs are of this machine, the simulator's own work included.",
		Tables: []report.Table{t, liars(s), cost}, Plots: coordinatesPlots(s), Figures: map[string]any{"simulated": coordinatesFigures(s)},
	}
}

// coordinatesFigures is everything that was found; where the plain algorithm
// lost all measure, there is nothing.
func coordinatesFigures(s coordinates.Result) []map[string]any {
	var all []map[string]any
	for _, c := range s.Cases {
		var at, middle, p90, closest, centre report.Values
		for _, p := range c.Series {
			at, middle, p90 = append(at, p.Seconds), append(middle, p.MedianError), append(p90, p.P90Error)
			closest, centre = append(closest, p.Closest3), append(centre, p.Centre)
		}
		a := c.Final
		all = append(all, map[string]any{
			"name": c.Name, "network": c.Space, "nodes": c.Nodes, "lie": c.Lie, "liars": c.Liars, "apart_s": c.Apart, "cost": c.Cost,
			"median_error": report.Number(a.MedianError), "p90_error": report.Number(a.P90Error), "closest_by_coordinates": a.Coordinates,
			"closest_by_measurements_first": a.Measured, "closest_by_two_probes": a.Probed, "measured_pairs": report.Number(a.MeasuredPairs),
			"series": map[string]report.Values{"time_s": at, "median_error": middle, "p90_error": p90, "closest_of_3": closest, "centre_ms": centre},
		})
	}
	return all
}

// coordinatesGoals are the figures beside a case: those that are of its network.
func coordinatesGoals(c coordinates.Case) (theirs, goal report.Cell) {
	if c.Space != planetlab {
		return report.None(), report.None()
	}
	switch c.Name {
	case "plain 2-D":
		return report.Text("0.106 / 0.515; 89.0 / 69.1"), report.None()
	case "plain 2-D + height":
		return report.Text("0.089 / 0.438; 90.7 / 72.3"), report.None()
	case "plain 8-D + height":
		return report.Text("0.083 / 0.402; 92.6 / 78.9"), report.None()
	case "2-D + height":
		return report.Text("0.089 / 0.438; 90.7 / 72.3"), report.None()
	case ours:
		return report.Text("0.083 / 0.402; 92.6 / 78.9"), report.Text("0.080 / 0.38; 95 / 85")
	}
	return report.None(), report.None()
}

// honest is the case that others are compared with: the same, undisturbed.
func honest(s coordinates.Result, plain bool) float64 {
	want := ours
	if plain {
		want = "plain 2-D + height"
	}
	for _, c := range s.Cases {
		if c.Name == want {
			return c.Final.MedianError
		}
	}
	return nan()
}

// liars is the table of what liars do to the others.
func liars(s coordinates.Result) report.Table {
	t := report.Table{Name: "liars", Title: "With liars among the nodes", Columns: []report.Column{
		{Name: "case"}, {Name: "liars", Unit: "%"}, {Name: "median error"}, {Name: "without liars"}, {Name: "worse by", Unit: "%"}, {Name: "to reach", Unit: "%"},
	}}
	for _, c := range s.Cases {
		if c.Liars == 0 {
			continue
		}
		base := honest(s, strings.Contains(c.Name, "plain"))
		goal := report.Text("at most 10")
		if strings.Contains(c.Name, "plain") || strings.Contains(c.Name, "no gravity") {
			goal = report.Text("-") // shown for comparison
		}
		t.Add(report.Text(c.Name), report.Number(100*c.Liars), report.Number(c.Final.MedianError), report.Number(base), report.Number(100*(c.Final.MedianError/base-1)), goal)
	}
	return t
}

func coordinatesPlots(s coordinates.Result) []report.Plot {
	over := report.Plot{
		Name: "overtime", Title: "Error of the predictions over time", X: report.Axis{Label: "virtual time, s", Log: true},
		Y: report.Axis{Label: "median relative error", Log: true},
	}
	apart := report.Plot{
		Name: "disturbed", Title: "Error over time with liars, and while and after two halves do not hear each other", X: report.Axis{Label: "virtual time, s", FromZero: true},
		Y: report.Axis{Label: "median relative error", FromZero: true, Max: 0.5},
	}
	closest := report.Plot{
		Name: "closest", Title: "How often the closest of 8 is found", Y: report.Axis{Label: "share, %", FromZero: true, Max: 100},
		Bars: []report.Bar{{Name: "by coordinates"}, {Name: "own measurements first"}, {Name: "two probes"}},
	}
	shown := map[string]bool{"plain 2-D + height": true, "2-D + height": true, ours: true, "plain 8-D + height": true}
	for _, c := range s.Cases {
		l := report.Line{Name: c.Name, Dashed: strings.Contains(c.Name, "plain")}
		for _, p := range c.Series {
			l.X, l.Y = append(l.X, p.Seconds), append(l.Y, p.MedianError)
		}
		switch {
		case shown[c.Name], c.Name == "large":
			over.Lines = append(over.Lines, l)
		case c.Name == "partition" || strings.HasSuffix(c.Name, string(coordinates.Mixed)):
			apart.Lines = append(apart.Lines, l)
		}
		if c.Apart > 0 {
			apart.Bands = append(apart.Bands, report.Band{Name: "halves apart", From: 0, To: c.Apart})
		}
		if shown[c.Name] {
			closest.Groups = append(closest.Groups, c.Name)
			for i, v := range []float64{c.Final.Coordinates.Of8, c.Final.Measured.Of8, c.Final.Probed.Of8} {
				closest.Bars[i].Y = append(closest.Bars[i].Y, 100*v)
			}
		}
	}
	return []report.Plot{over, apart, closest}
}
