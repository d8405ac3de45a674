package rehearse

import (
	"fmt"
	"math"
	"sort"

	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/wan"
)

// figures is what report.json holds beside the tables.
type figures struct {
	Samples []sample   `json:"samples"`
	Faults  []happened `json:"faults"`
	Checks  []happened `json:"checks"`
	Network *wan.Stats `json:"network"`
}

// result is the tables and the plot.
func (r *rehearsal) result(network *wan.Stats) report.Result {
	sort.SliceStable(r.samples, func(i, j int) bool { return r.samples[i].At < r.samples[j].At })
	out := report.Result{
		Title: r.Name, SetUp: r.Summary, Void: network.Void(), Tables: []report.Table{r.workTable()},
		Figures: figures{r.samples, r.faults, r.checks, network},
	}
	if out.SetUp == "" {
		out.SetUp = fmt.Sprintf("%d hosts at %d sites (%s)", len(r.Topology.Hosts), len(r.Topology.Sites), r.Topology.Name)
	}
	if left := len(r.Faults) - len(r.faults); left > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d faults were not done: all work had ended before their time.", left))
	}
	if len(r.faults) > 0 {
		out.Tables = append(out.Tables, happenedTable("faults", "Faults", "fault", r.faults))
	}
	if len(r.checks) > 0 {
		out.Tables = append(out.Tables, happenedTable("checks", "Checks", "check", r.checks))
	}
	if len(r.samples) > 0 {
		out.Plots = []report.Plot{r.plot()}
	}
	return out
}

func (r *rehearsal) workTable() report.Table {
	t := report.Table{Name: "work", Title: "Work", Columns: []report.Column{
		{Name: "work"}, {Name: "host"}, {Name: "runs"}, {Name: "failed"}, {Name: "median", Unit: "ms"}, {Name: "p99", Unit: "ms"},
		{Name: "longest", Unit: "ms"}, {Name: "longest gap", Unit: "s"},
	}}
	for _, w := range r.Work {
		for _, host := range w.Hosts {
			var took []float64
			failed := 0
			gap, last := 0.0, w.At.Seconds()
			for _, s := range r.samples {
				if s.Work != w.Name || s.Host != host {
					continue
				}
				took = append(took, s.Seconds*1000)
				if s.Failed != "" {
					failed++
					continue
				}
				gap, last = math.Max(gap, s.At+s.Seconds-last), s.At+s.Seconds
			}
			sort.Float64s(took)
			t.Add(report.Text(w.Name), report.Text(host), report.Count(len(took)), report.Count(failed),
				report.Number(quantile(took, 0.5)), report.Number(quantile(took, 0.99)), report.Number(quantile(took, 1)), report.Number(gap))
		}
	}
	return t
}

// quantile of sorted values; NaN of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func happenedTable(name, title, what string, all []happened) report.Table {
	t := report.Table{Name: name, Title: title, Columns: []report.Column{{Name: "at", Unit: "s"}, {Name: what}, {Name: "result"}}}
	for _, h := range all {
		result := "done"
		if h.Failed != "" {
			result = "failed: " + h.Failed
		}
		t.Add(report.Number(h.At), report.Text(h.What), report.Text(result))
	}
	return t
}

// plotSteps is how many points a line has, at most.
const plotSteps = 120

// plot is successful runs a second over time, of each work; bands are the times
// from a fault to what lifts one.
func (r *rehearsal) plot() report.Plot {
	end := 0.0
	for _, s := range r.samples {
		end = math.Max(end, s.At+s.Seconds)
	}
	step := math.Max(1, math.Ceil(end/plotSteps))
	n := int(end/step) + 1
	p := report.Plot{Name: "runs", Title: r.Name + ": runs per second", X: report.Axis{Label: "time, s"}, Y: report.Axis{Label: "successful runs per second"}}
	for _, w := range r.Work {
		line := report.Line{Name: w.Name, X: make(report.Values, n), Y: make(report.Values, n)}
		for i := range n {
			line.X[i] = (float64(i) + 0.5) * step
		}
		for _, s := range r.samples {
			if s.Work == w.Name && s.Failed == "" {
				line.Y[int((s.At+s.Seconds)/step)] += 1 / step
			}
		}
		p.Lines = append(p.Lines, line)
	}
	for i, f := range r.faults {
		if f.lifts {
			continue
		}
		until := end
		for _, later := range r.faults[i+1:] {
			if later.lifts {
				until = later.At
				break
			}
		}
		p.Bands = append(p.Bands, report.Band{Name: f.What, From: f.At, To: until})
	}
	return p
}
