package experiments

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/report"
)

// garageSource is where the figures of Garage are from.
const garageSource = "Garage over three sites at 100 +- 20 ms, median, as its makers measured it (docs/experiments.md, Figures of others)"

func garage() experiment.Experiment {
	return experiment.Experiment{
		Name:    "garage",
		Summary: "put, get, list and delete small objects, three sites at 100 +- 20 ms",
		Settings: []experiment.Setting{
			{Name: "topology", Default: "three-dc", Help: "three sites"},
			{Name: "objects", Default: "100", Help: "objects a way of access (10 in the short form)"},
			{Name: "bytes", Default: "1024", Help: "bytes of an object"},
			{Name: "lists", Default: "20", Help: "listings (3 in the short form)"},
		},
		Run: runGarage,
	}
}

// garageWay is one way to the objects.
type garageWay struct {
	Name    string `json:"name"`
	home    string // site of the folder
	client  string // site of the client
	cue     string // in the path
	library bool
}

// garageRow is what one way gave.
type garageRow struct {
	garageWay
	load.ObjectResult
}

func runGarage(ctx context.Context, env *experiment.Env) error {
	t, err := chosen(env)
	if err != nil {
		return err
	}
	o, err := objectOptions(env)
	if err != nil {
		return err
	}
	f, err := env.Folder("garage", t)
	if err != nil {
		return err
	}
	home, other := t.Sites[0].Name, t.Sites[min(1, len(t.Sites)-1)].Name
	ways := []garageWay{
		{Name: "mount", home: home, client: home},
		{Name: "library", home: home, client: home, library: true},
		{Name: "mount, majority", home: home, client: home, cue: ".SyncLevel=quorum"},
		{Name: "library, majority", home: home, client: home, cue: ".SyncLevel=quorum", library: true},
		{Name: "library, from another site", home: home, client: other, library: true},
	}
	var rows []garageRow
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) error {
		rows = nil
		for i, w := range ways {
			b.say("garage: %s", w.Name)
			r, err := garageOnce(ctx, b, w, fmt.Sprintf("garage-%d", i), o)
			if err != nil {
				return err
			}
			rows = append(rows, garageRow{w, r})
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := garageReport(rows, o)
	return out.end(f, env, r, nil)
}

func objectOptions(env *experiment.Env) (load.ObjectOptions, error) {
	o := load.ObjectOptions{Seed: env.Seed}
	for name, into := range map[string]*int{"objects": &o.Count, "bytes": &o.Bytes, "lists": &o.Lists} {
		v, err := env.Number(name)
		if err != nil {
			return o, err
		}
		*into = int(v)
	}
	if env.Short {
		o.Count, o.Lists = min(o.Count, 10), min(o.Lists, 3)
	}
	return o, nil
}

// garageOnce makes a folder whose home is a site, and works on it from a
// client's.
func garageOnce(ctx context.Context, b *bed, w garageWay, folder string, o load.ObjectOptions) (load.ObjectResult, error) {
	var r load.ObjectResult
	home, err := b.at(w.home)
	if err != nil {
		return r, err
	}
	if err := mkdir(ctx, filepath.Join(home.mount, ".Site="+w.home, folder)); err != nil {
		return r, err
	}
	client, err := b.at(w.client)
	if err != nil {
		return r, err
	}
	args := []string{
		"objects", filepath.Join(client.mount, w.cue, folder), "--count", strconv.Itoa(o.Count), "--bytes", strconv.Itoa(o.Bytes),
		"--lists", strconv.Itoa(o.Lists), "--seed", strconv.FormatUint(o.Seed, 10),
	}
	if w.library {
		args[1] = filepath.Join("/", w.cue, folder)
		args = append(args, "--contact", client.contact, "--site", client.site)
	}
	return r, client.work(ctx, &r, args...)
}

func garageReport(rows []garageRow, o load.ObjectOptions) report.Result {
	figures := map[string]struct{ theirs, limit, reach float64 }{"put": {109, 100, 115}, "get": {112, 0, 5}, "delete": {217, 100, 115}}
	t := report.Table{Name: "latency", Title: "Latency of one operation", Columns: []report.Column{
		{Name: "access"}, {Name: "operation"}, {Name: "median", Unit: "ms"}, {Name: "p90", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "count"},
		{Name: "Garage", Unit: "ms", Source: garageSource}, {Name: "limit", Unit: "ms"}, {Name: "to reach", Unit: "ms"},
	}}
	operations := []string{"put", "get", "list", "delete"}
	bars := report.Plot{
		Name: "latency", Title: "Median latency of one operation, three sites at 100 +- 20 ms",
		Y: report.Axis{Label: "median, ms", FromZero: true}, Groups: operations,
	}
	spread := report.Plot{
		Name: "distribution", Title: "Share of the puts that took at most so long", X: report.Axis{Label: "time, ms", FromZero: true},
		Y: report.Axis{Label: "share of the puts", FromZero: true},
	}
	for _, row := range rows {
		bar := report.Bar{Name: row.Name}
		for i, v := range [][]float64{row.Put, row.Get, row.List, row.Delete} {
			theirs, limit, reach := report.None(), report.None(), report.None()
			if g, known := figures[operations[i]]; known {
				theirs, limit, reach = report.Number(g.theirs), report.Number(g.limit), report.Number(g.reach)
			}
			t.Add(report.Text(row.Name), report.Text(operations[i]), report.Number(median(v)), report.Number(quantile(v, 0.9)), report.Number(quantile(v, 0.99)),
				report.Count(len(v)), theirs, limit, reach)
			bar.Y = append(bar.Y, median(v))
		}
		bars.Bars = append(bars.Bars, bar)
		spread.Lines = append(spread.Lines, cumulative(row.Name, row.Put))
	}
	bars.Bars = append(bars.Bars, report.Bar{Name: "Garage (published)", Y: report.Values{109, 112, nan(), 217}})
	return report.Result{
		Title: "garage: small objects over three sites",
		SetUp: fmt.Sprintf("%d objects of %d bytes, one operation after the other, in a folder with three replicas, one a site. "+
			"The client stands at the folder's home site where nothing else is said; gets and lists are of what it has not cached.", o.Count, o.Bytes),
		Tables: []report.Table{t}, Plots: []report.Plot{bars, spread}, Figures: rows,
	}
}
