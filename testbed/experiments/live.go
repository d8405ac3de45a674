package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

// liveEvery is how often the live nodes are asked for their predictions.
const liveEvery = 5 * time.Second

// liveTopology puts each node at a site of its own: hosts of the matrix where
// one is given, else cities. It is nil for no hosts.
func liveTopology(env *experiment.Env, hosts int) (*topology.Topology, error) {
	if hosts == 0 {
		return nil, nil
	}
	if path := env.Text("planetlab"); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "experiments.liveTopology", path, err)
		}
		return described("live", fmt.Sprintf("name: live\nmounts: none\nmatrix: {file: %q, seed: %d, hosts: %d}\n", path, env.Seed, hosts))
	}
	all := topology.Cities()
	if hosts > len(all) {
		return nil, fault.Errorf(fault.Usage, "experiments.liveTopology", "live", "%d cities are known; name a matrix with --set planetlab=FILE for more hosts", len(all))
	}
	var names []string
	for i := range hosts { // spread over the alphabet, and so over the earth
		names = append(names, all[i*len(all)/hosts].Name)
	}
	return described("live", fmt.Sprintf("name: live\nmounts: none\ncities: {places: [%s]}\n", strings.Join(names, ", ")))
}

// liveLink is what one node knows of the way to another.
type liveLink struct {
	From      string   `json:"from_site"`
	To        string   `json:"to_site"`
	Measured  *float64 `json:"measured_ms"`
	Predicted *float64 `json:"predicted_ms"`
	// True is what the emulator makes it.
	True float64 `json:"true_ms"`
}

// livePoint is how good the predictions were at a moment.
type livePoint struct {
	Seconds  float64 `json:"time_s"`
	Pairs    int     `json:"pairs"` // that had a prediction
	Median   float64 `json:"median_relative_error"`
	P90      float64 `json:"p90_relative_error"`
	Measured float64 `json:"median_relative_error_measured"`
}

// liveResult is the live part.
type liveResult struct {
	Hosts  int         `json:"hosts"`
	Series []livePoint `json:"series"`
	Links  []liveLink  `json:"links"` // at the end
}

// liveCoordinates lets real nodes find their coordinates over an emulated wide
// area, and compares what they predict with what is true.
func liveCoordinates(ctx context.Context, env *experiment.Env, f *report.Folder, t *topology.Topology, seconds int) (r liveResult, o outcome, err error) {
	r.Hosts = len(t.Hosts)
	o, err = withLab(ctx, env, f, t, func(ctx context.Context, b *bed) error {
		r.Series, r.Links = nil, nil
		at, err := b.host(t.Hosts[0])
		if err != nil {
			return err
		}
		start := time.Now()
		for time.Since(start) < time.Duration(seconds)*time.Second {
			if err := sleep(ctx, liveEvery); err != nil {
				return err
			}
			out, err := at.run(ctx, at.programs.Cartwheel, "--json", "net", "matrix")
			if err != nil {
				return err
			}
			var seen struct {
				Links []liveLink `json:"links"`
			}
			if err := json.Unmarshal(out, &seen); err != nil {
				return fault.Wrap(fault.Other, "experiments.live", "cartwheel net matrix", err)
			}
			r.Links = truths(seen.Links, t)
			r.Series = append(r.Series, pointOf(r.Links, time.Since(start).Seconds()))
		}
		return nil
	})
	return r, o, err
}

// truths adds what the topology says; links within a site are left out.
func truths(links []liveLink, t *topology.Topology) []liveLink {
	var out []liveLink
	for _, l := range links {
		if l.From == l.To {
			continue
		}
		l.True = float64(t.RTT(l.From, l.To)) / float64(time.Millisecond)
		out = append(out, l)
	}
	return out
}

func pointOf(links []liveLink, at float64) livePoint {
	var predicted, measured []float64
	for _, l := range links {
		if l.Predicted != nil {
			predicted = append(predicted, math.Abs(*l.Predicted-l.True)/l.True)
		}
		if l.Measured != nil {
			measured = append(measured, math.Abs(*l.Measured-l.True)/l.True)
		}
	}
	p := livePoint{Seconds: at, Pairs: len(predicted)}
	if len(predicted) > 0 {
		p.Median, p.P90 = median(predicted), quantile(predicted, 0.9)
	}
	if len(measured) > 0 {
		p.Measured = median(measured)
	}
	return p
}

// addTo adds the live part to the report.
func (l liveResult) addTo(r *report.Result) {
	t := report.Table{Name: "live", Title: "Live: real nodes over the emulated wide area, against its true round trips", Columns: []report.Column{
		{Name: "hosts"}, {Name: "after", Unit: "s"}, {Name: "ways predicted"}, {Name: "of"}, {Name: "median error"}, {Name: "p90 error"}, {Name: "median error of what was measured"},
	}}
	line, worse := report.Line{Name: "median"}, report.Line{Name: "p90", Dashed: true}
	for i, p := range l.Series {
		if i == len(l.Series)-1 || i%6 == 1 {
			t.Add(report.Count(l.Hosts), report.Number(p.Seconds), report.Count(p.Pairs), report.Count(l.Hosts*(l.Hosts-1)), report.Number(p.Median), report.Number(p.P90), report.Number(p.Measured))
		}
		if p.Pairs > 0 {
			line.X, line.Y = append(line.X, p.Seconds), append(line.Y, p.Median)
			worse.X, worse.Y = append(worse.X, p.Seconds), append(worse.Y, p.P90)
		}
	}
	scatter, equal := report.Line{Name: "a way from one host to another", Points: true}, report.Line{Name: "exact", Dashed: true}
	for _, w := range l.Links {
		if w.Predicted != nil {
			scatter.X, scatter.Y = append(scatter.X, w.True), append(scatter.Y, *w.Predicted)
			equal.X, equal.Y = append(equal.X, w.True), append(equal.Y, w.True)
		}
	}
	r.Tables = append(r.Tables, t)
	r.Plots = append(r.Plots,
		report.Plot{Name: "live", Title: "Live: error of the predictions", X: report.Axis{Label: "time since the start, s", FromZero: true},
			Y: report.Axis{Label: "relative error", FromZero: true}, Lines: []report.Line{line, worse}},
		report.Plot{Name: "scatter", Title: "Live: predicted and true round trips", X: report.Axis{Label: "true, ms", FromZero: true},
			Y: report.Axis{Label: "predicted, ms", FromZero: true}, Lines: []report.Line{scatter, equal}})
	if all, ok := r.Figures.(map[string]any); ok {
		all["live"] = l
	}
}
