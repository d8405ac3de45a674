package experiments

import (
	"fmt"
	"time"

	"cartwheel.dev/testbed/desktops"
	"cartwheel.dev/testbed/report"
)

// placementSource is where the figures of BeeFS are from, and placementLeast its
// least share of local reads, in percent.
const (
	placementSource = "BeeFS's Figures 3 and 4, with a trace of its own (docs/experiments.md, Figures of others)"
	placementLeast  = 75
)

// placementGroup is one policy at one probability, over the seeds.
type placementGroup struct {
	policy desktops.Policy
	move   float64
	each   []desktops.Outcome
	facts  []desktops.Facts
}

// placementGroups has every probability's policies together, in their order.
func placementGroups(p placementPlan, variant string, rows []placementRow) []placementGroup {
	var out []placementGroup
	for _, move := range p.moves {
		for _, policy := range desktops.Policies() {
			g := placementGroup{policy: policy, move: move}
			for _, r := range rows {
				for _, o := range r.Outcomes {
					if r.Variant == variant && r.Move == move && o.Policy == policy {
						g.each, g.facts = append(g.each, o), append(g.facts, r.Facts)
					}
				}
			}
			if len(g.each) > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

// of is a figure of each seed.
func (g placementGroup) of(figure func(desktops.Outcome) float64) []float64 {
	var out []float64
	for _, o := range g.each {
		out = append(out, figure(o))
	}
	return out
}

func (g placementGroup) local() []float64 {
	return g.of(func(o desktops.Outcome) float64 { return 100 * o.All.Local() })
}

func (g placementGroup) near() []float64 {
	return g.of(func(o desktops.Outcome) float64 { return 100 * o.All.Near() })
}

// percent is a part of a whole, which may be nothing.
func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// least and most are the ends of a spread.
func least(v []float64) float64 { return quantile(v, 0) }
func most(v []float64) float64  { return quantile(v, 1) }

func placementReport(p placementPlan, rows []placementRow) report.Result {
	groups := placementGroups(p, "", rows)
	r := report.Result{
		Title: "placement: where files lie whose users move",
		SetUp: fmt.Sprintf("In virtual time: %d desktops of %g GB, %g %% of each in use by others, and %d of them full of users' old files. %d copies of each file, secondaries %g s after the close. "+
			"%g months of accesses from a generator, %d seeds. A user logs in at another machine with each probability.",
			p.Desktops, float64(p.DiskBytes)/1e9, 100*p.Fill, p.Full, p.Copies, p.Coherence.Seconds(), p.Months, p.seeds),
		Notes: []string{
			"BeeFS's rules and the random ones are the simulator's. Cartwheel's places come from the code that ships; nothing in it moves files off a full disk, so writes there are refused.",
			"The paper's trace cannot be had: the generator's rests on assumptions, and the whole form shows how much these matter.",
		},
		Tables: []report.Table{placementLocal(groups), placementChoice(p, groups), placementRoom(groups), placementTrace(p, rows)},
		Plots:  []report.Plot{placementWeeks(groups), placementBars(p, groups)}, Figures: rows,
	}
	if len(p.variants) > 0 {
		r.Tables = append(r.Tables, placementAssumptions(p, rows))
	}
	return r
}

func placementLocal(groups []placementGroup) report.Table {
	t := report.Table{Name: "local", Title: "Reads that the reader's own machine serves (mean of the seeds, least, most)", Columns: []report.Column{
		{Name: "moves"}, {Name: "policy"}, {Name: "by the primary", Unit: "%"}, {Name: "least", Unit: "%"}, {Name: "most", Unit: "%"},
		{Name: "by any current copy", Unit: "%"}, {Name: "least", Unit: "%"}, {Name: "most", Unit: "%"},
		{Name: "writes refused", Unit: "%"}, {Name: "reads of what was refused", Unit: "%"}, {Name: "BeeFS", Unit: "%", Source: placementSource},
	}}
	for _, g := range groups {
		theirs := report.None()
		if g.policy == desktops.BeeRandom || g.policy == desktops.BeeLRU {
			theirs = report.Text(fmt.Sprintf("at least %d", placementLeast))
		}
		t.Add(report.Number(g.move), report.Text(string(g.policy)), report.Number(mean(g.local())), report.Number(least(g.local())), report.Number(most(g.local())),
			report.Number(mean(g.near())), report.Number(least(g.near())), report.Number(most(g.near())),
			report.Number(mean(g.of(func(o desktops.Outcome) float64 { return percent(o.Refused, o.Writes) }))),
			report.Number(mean(g.of(func(o desktops.Outcome) float64 { return percent(o.All.Missing, o.All.Missing+o.All.Served()) }))), theirs)
	}
	return t
}

// placementChoice compares the two ways to choose what leaves a full disk, seed by
// seed.
func placementChoice(p placementPlan, groups []placementGroup) report.Table {
	t := report.Table{Name: "choice", Title: "Local reads where random primaries leave a full disk, less those where the least recently used leave", Columns: []report.Column{
		{Name: "moves"}, {Name: "mean", Unit: "points"}, {Name: "least", Unit: "points"}, {Name: "most", Unit: "points"}, {Name: "BeeFS", Source: placementSource},
	}}
	for _, move := range p.moves {
		var random, lru []float64
		for _, g := range groups {
			switch {
			case g.move == move && g.policy == desktops.BeeRandom:
				random = g.local()
			case g.move == move && g.policy == desktops.BeeLRU:
				lru = g.local()
			}
		}
		var apart []float64
		for i := range min(len(random), len(lru)) {
			apart = append(apart, random[i]-lru[i])
		}
		t.Add(report.Number(move), report.Number(mean(apart)), report.Number(least(apart)), report.Number(most(apart)), report.Text("no significant difference"))
	}
	return t
}

func placementRoom(groups []placementGroup) report.Table {
	t := report.Table{Name: "room", Title: "What full disks cost (mean of the seeds)", Columns: []report.Column{
		{Name: "moves"}, {Name: "policy"}, {Name: "secondaries evicted"}, {Name: "primaries moved"}, {Name: "created elsewhere", Unit: "% of writes"},
		{Name: "files short of copies at the end"}, {Name: "slices"},
	}}
	for _, g := range groups {
		figures := []func(desktops.Outcome) float64{
			func(o desktops.Outcome) float64 { return float64(o.Evicted) },
			func(o desktops.Outcome) float64 { return float64(o.Moved) },
			func(o desktops.Outcome) float64 { return percent(o.Elsewhere, o.Writes) },
			func(o desktops.Outcome) float64 { return float64(o.Short) },
			func(o desktops.Outcome) float64 { return float64(o.Slices) },
		}
		cells := []report.Cell{report.Number(g.move), report.Text(string(g.policy))}
		for _, f := range figures {
			cells = append(cells, report.Number(mean(g.of(f))))
		}
		t.Add(cells...)
	}
	return t
}

// placementTrace has the facts of the first seed's traces.
func placementTrace(p placementPlan, rows []placementRow) report.Table {
	t := report.Table{Name: "trace", Title: "What the traces are like (the first seed)", Columns: []report.Column{
		{Name: "moves"}, {Name: "opens"}, {Name: "reads"}, {Name: "written", Unit: "MB"}, {Name: "median new file", Unit: "B"},
		{Name: "stats followed by another", Unit: "%"}, {Name: "in the paper", Unit: "%", Source: placementSource},
		{Name: "median time open", Unit: "ms"}, {Name: "open under 1 ms", Unit: "%"}, {Name: "in the paper", Source: placementSource},
		{Name: "logins elsewhere", Unit: "%"}, {Name: "reads of files written since the login", Unit: "%"},
	}}
	for _, r := range rows {
		if f := r.Facts; r.Variant == "" && r.Seed == p.Seed {
			t.Add(report.Number(r.Move), report.Count(f.Opens), report.Count(f.ByKind[desktops.Read.String()]), report.Number(float64(f.Written)/1e6), report.Count(f.MedianSize),
				report.Number(100*f.Followed), report.Number(98), report.Number(float64(f.MedianOpen)/float64(time.Millisecond)), report.Number(100*f.Brief), report.Text("most"),
				report.Number(100*f.Away), report.Number(100*f.Own))
		}
	}
	return t
}

// placementAssumptions shows BeeFS's rules (LRU leaves) under each assumption.
func placementAssumptions(p placementPlan, rows []placementRow) report.Table {
	t := report.Table{Name: "assumptions", Title: "BeeFS, LRU leaves, under other assumptions about the users (the first seed)", Columns: []report.Column{
		{Name: "assumption"}, {Name: "moves"}, {Name: "by the primary", Unit: "%"}, {Name: "by any current copy", Unit: "%"},
		{Name: "reads of files written since the login", Unit: "%"}, {Name: "BeeFS", Unit: "%", Source: placementSource},
	}}
	theirs := report.Text(fmt.Sprintf("at least %d", placementLeast))
	for _, v := range p.variants {
		for _, g := range placementGroups(p, v.name, rows) {
			t.Add(report.Text(v.name), report.Number(g.move), report.Number(mean(g.local())), report.Number(mean(g.near())), report.Number(100*g.facts[0].Own), theirs)
		}
	}
	return t
}

// placementWeeks has the share of local reads over time. Weeks without reads are
// left out.
func placementWeeks(groups []placementGroup) report.Plot {
	plot := report.Plot{
		Name: "weeks", Title: "Reads served by the primary on the reader's machine", X: report.Axis{Label: "week", FromZero: true},
		Y: report.Axis{Label: "local reads, %", FromZero: true, Max: 100}, Marks: []report.Mark{{Name: "BeeFS's paper: at least", Y: placementLeast}},
	}
	for _, g := range groups {
		if g.policy != desktops.BeeRandom && g.policy != desktops.BeeLRU {
			continue
		}
		l := report.Line{Name: fmt.Sprintf("moves %g, %s", g.move, g.policy), Dashed: g.policy == desktops.BeeLRU}
		for week := range g.each[0].Weeks {
			var of []float64
			for _, o := range g.each {
				if w := o.Weeks[week]; w.Served() > 0 {
					of = append(of, 100*w.Local())
				}
			}
			if len(of) > 0 {
				l.X, l.Y = append(l.X, float64(week+1)), append(l.Y, mean(of))
			}
		}
		plot.Lines = append(plot.Lines, l)
	}
	return plot
}

// placementBars has all policies side by side.
func placementBars(p placementPlan, groups []placementGroup) report.Plot {
	plot := report.Plot{
		Name: "policies", Title: "Reads served by the primary on the reader's machine", Y: report.Axis{Label: "local reads, %", FromZero: true, Max: 100},
		Marks: []report.Mark{{Name: "BeeFS's paper: at least", Y: placementLeast}},
	}
	for _, move := range p.moves {
		plot.Groups = append(plot.Groups, fmt.Sprintf("moves %g", move))
	}
	for _, policy := range desktops.Policies() {
		b := report.Bar{Name: string(policy)}
		for _, g := range groups {
			if g.policy == policy {
				b.Y = append(b.Y, mean(g.local()))
			}
		}
		plot.Bars = append(plot.Bars, b)
	}
	return plot
}
