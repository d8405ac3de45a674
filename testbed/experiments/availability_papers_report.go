package experiments

import (
	"fmt"
	"strings"

	"cartwheel.dev/testbed/reliability"
	"cartwheel.dev/testbed/report"
)

// Where the papers' figures are from.
const (
	beanSource = "BeanFS's section 6, at its harshest rates (docs/experiments.md, Figures of others)"
	cfsSource  = "CFS's section 5.1"
)

// addTo puts the papers' tables and plots behind the policies'.
func (r *paperRows) addTo(out *report.Result, p availabilityPlan) {
	out.Notes = append(out.Notes,
		fmt.Sprintf("BeanFS's paper does not print its recovery times. Permanent ones take 40 minutes here, which its text has elsewhere; %.1f minutes for transient ones are inferred from its 0.0002 %%.", r.Inferred/60),
		"The paper's formulas have the second and the third failure fall into the recovery from the first. Those of the overlap have all three be away at the same time, as the simulation does.",
		fmt.Sprintf("Intervals hold with %g %% confidence, over %d runs: about one of a hundred misses what it estimates.", 100*availabilityConfidence, p.runs))
	out.Tables = append(out.Tables, r.recoveryTable(), r.pathTable(), r.deadTable(), r.scatterTable(), r.chainTable(), r.ruleTable())
	out.Plots = append(out.Plots, r.deadPlot(), r.chainPlot())
}

// fromTo writes the ends of an interval.
func fromTo(i reliability.Interval) report.Cell {
	return report.Text(report.Number(i.Low).String() + " to " + report.Number(i.High).String())
}

func (r *paperRows) recoveryTable() report.Table {
	t := report.Table{Name: "recoveries", Title: fmt.Sprintf("Volumes of %d on %d servers that die in two years, at BeanFS's harshest rates", beanVolumes, beanServers), Columns: []report.Column{
		{Name: "recoveries"}, {Name: "transient", Unit: "s"}, {Name: "permanent", Unit: "s"}, {Name: "dead by the paper's formulas", Unit: "%"}, {Name: "by the overlap", Unit: "%"},
		{Name: "simulated", Unit: "%"}, {Name: "simulated, from and to"}, {Name: "volumes"}, {Name: "BeanFS", Unit: "%", Source: beanSource},
	}}
	for i, x := range r.Recoveries {
		theirs := report.None()
		if i == 0 {
			theirs = report.Number(100 * beanDead)
		}
		t.Add(report.Text(x.Name), report.Number(x.Transient.Recovery), report.Number(x.Permanent.Recovery), report.Number(100*x.Paper), report.Number(100*x.Overlap),
			report.Number(100*x.Played.Mean), fromTo(x.Played.Times(100)), report.Number(x.Played.Mean*beanVolumes), theirs)
	}
	return t
}

func (r *paperRows) pathTable() report.Table {
	t := report.Table{Name: "paths", Title: "The same, by what failed: permanent failures (PF) and transient ones (TF)", Columns: []report.Column{
		{Name: "recoveries"}, {Name: "what failed"}, {Name: "by the paper's formulas", Unit: "%"}, {Name: "by the overlap", Unit: "%"}, {Name: "simulated", Unit: "%"}, {Name: "simulated, from and to"},
	}}
	for _, x := range r.Recoveries {
		for k, what := range []string{"3TF", "2TF/1PF", "1TF/2PF", "3PF"} {
			t.Add(report.Text(x.Name), report.Text(what), report.Number(100*x.Paths[k]), report.Number(100*x.Overlaps[k]), report.Number(100*x.Plays[k].Mean), fromTo(x.Plays[k].Times(100)))
		}
	}
	return t
}

func (r *paperRows) deadTable() report.Table {
	t := report.Table{Name: "dead", Title: "Volumes that die in two years, by the rates of BeanFS's figure", Columns: []report.Column{
		{Name: "permanent, 1e-8 /s"}, {Name: "transient, 1e-8 /s"}, {Name: "by the paper's formulas", Unit: "%"}, {Name: "by the overlap", Unit: "%"}, {Name: "simulated", Unit: "%"}, {Name: "simulated, from and to"}, {Name: "agree"},
	}}
	for _, x := range r.Dead {
		agree := "yes"
		if !x.Played.Has(x.Overlap) {
			agree = "no"
		}
		t.Add(report.Number(1e8*x.Permanent.Rate), report.Number(1e8*x.Transient.Rate), report.Number(100*x.Paper), report.Number(100*x.Overlap),
			report.Number(100*x.Played.Mean), fromTo(x.Played.Times(100)), report.Text(agree))
	}
	return t
}

func (r *paperRows) scatterTable() report.Table {
	t := report.Table{Name: "scatter", Title: "The harshest rates with a bounded scatter width (copysets)", Columns: []report.Column{
		{Name: "scatter width"}, {Name: "volumes of a group"}, {Name: "permanent recovery", Unit: "s"}, {Name: "runs in which volumes die", Unit: "%"}, {Name: "from and to"},
		{Name: "dead volumes by the overlap"}, {Name: "simulated"}, {Name: "simulated, from and to"},
	}}
	for _, x := range r.Scatters {
		width := report.Text("any servers")
		if x.Scatter > 0 {
			width = report.Text(fmt.Sprint(x.Scatter))
		}
		t.Add(width, report.Number(x.PerGroup), report.Number(x.Permanent), report.Number(100*x.Hit.Mean), fromTo(x.Hit.Times(100)), report.Number(x.Overlap), report.Number(x.Dead.Mean), fromTo(x.Dead))
	}
	return t
}

func (r *paperRows) chainTable() report.Table {
	t := report.Table{Name: "chain", Title: fmt.Sprintf("CFS's Markov chain, l %g and m %g: mean time until no server is left, in times of one server's", cfsFails, cfsRepairs), Columns: []report.Column{
		{Name: "standbys"}, {Name: "times one server"}, {Name: "share of time without a server"}, {Name: "CFS", Source: cfsSource},
	}}
	for _, x := range r.Chains {
		theirs := report.None()
		if x.Standbys == 2 {
			theirs = report.Number(cfsFactor)
		}
		t.Add(report.Count(x.Standbys), report.Number(x.Factor), report.Number(x.Gone), theirs)
	}
	return t
}

func (r *paperRows) ruleTable() report.Table {
	t := report.Table{Name: "rules", Title: "The policies' formulas beside the rules of a replica group, played with frail nodes and sites; in a year", Columns: []report.Column{
		{Name: "copies at each site"}, {Name: "what"}, {Name: "by the formulas"}, {Name: "simulated"}, {Name: "simulated, from and to"},
	}}
	for _, x := range r.Rules {
		t.Add(report.Text(strings.Trim(fmt.Sprint(x.Layout), "[]")), report.Text(x.What), report.Number(x.Formula), report.Number(x.Played.Mean), fromTo(x.Played))
	}
	return t
}

// deadPlot is BeanFS's figure: formulas as lines, the simulation as points.
func (r *paperRows) deadPlot() report.Plot {
	p := report.Plot{Name: "dead", Title: "Volumes that die in two years", X: report.Axis{Label: "transient failures of a replica, 1e-8 a second"},
		Y: report.Axis{Label: "dead volumes, %", FromZero: true}, Marks: []report.Mark{{Name: "BeanFS at the harshest rates", Y: 100 * beanDead}}}
	for _, permanent := range []float64{1e-8, beanPermanent} {
		name := fmt.Sprintf("permanent %.1fe-8", 1e8*permanent)
		formula, simulated := report.Line{Name: name}, report.Line{Name: name + ", simulated", Points: true}
		for _, x := range r.Dead {
			if x.Permanent.Rate == permanent {
				formula.X, formula.Y = append(formula.X, 1e8*x.Transient.Rate), append(formula.Y, 100*x.Overlap)
				simulated.X, simulated.Y = append(simulated.X, 1e8*x.Transient.Rate), append(simulated.Y, 100*x.Played.Mean)
			}
		}
		p.Lines = append(p.Lines, formula, simulated)
	}
	return p
}

func (r *paperRows) chainPlot() report.Plot {
	l := report.Line{Name: "CFS's Markov chain"}
	for _, x := range r.Chains {
		l.X, l.Y = append(l.X, float64(x.Standbys)), append(l.Y, x.Factor)
	}
	return report.Plot{Name: "chain", Title: "Mean time until no server is left", X: report.Axis{Label: "standbys"}, Y: report.Axis{Label: "times one server", Log: true},
		Lines: []report.Line{l}, Marks: []report.Mark{{Name: "CFS with two standbys", Y: cfsFactor}}}
}
