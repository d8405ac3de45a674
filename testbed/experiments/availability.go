package experiments

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/availability"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/reliability"
	"cartwheel.dev/testbed/report"
)

func availabilityExperiment() experiment.Experiment {
	settings := []experiment.Setting{
		{Name: "file", Help: "YAML file of figures and policies"},
		{Name: "measured", Help: "JSON file of measured recovery times"},
		{Name: "policies", Help: "policies as LEVEL/SITES, joined by commas (default: 1 to 4 copies)"},
		{Name: "papers", Default: "yes", Help: "whether BeanFS's and CFS's models are played, too"},
		{Name: "runs", Default: "2000", Help: "simulated runs of each set-up, 2 to 100000 (50 in the short form)"},
	}
	usual := availability.Defaults()
	for _, x := range figures() {
		settings = append(settings, experiment.Setting{Name: x.name, Help: fmt.Sprintf("%s (default: %s)", x.help, x.text(&usual))})
	}
	return experiment.Experiment{
		Name:     "availability",
		Summary:  "expected downtime and loss a year of each policy, and BeanFS's and CFS's models beside simulations",
		Settings: settings,
		Run:      runAvailability,
	}
}

// availabilityPlan is what is computed.
type availabilityPlan struct {
	operator
	seed   uint64
	papers bool
	runs   int
}

func planAvailability(env *experiment.Env) (availabilityPlan, error) {
	const op fault.Op = "experiments.planAvailability"
	p := availabilityPlan{seed: env.Seed, papers: env.Text("papers") == "yes"}
	if !p.papers && env.Text("papers") != "no" {
		return p, fault.Errorf(fault.Usage, op, "papers", "%q is neither yes nor no", env.Text("papers"))
	}
	runs, err := env.Number("runs")
	if err != nil {
		return p, err
	}
	if !(runs >= 2 && runs <= 100_000) || runs != math.Trunc(runs) {
		return p, fault.Errorf(fault.Usage, op, "runs", "%q is no whole number from 2 to 100000", env.Text("runs"))
	}
	if p.runs = int(runs); env.Short {
		p.runs = min(p.runs, 50)
	}
	p.operator, err = readOperator(env)
	return p, err
}

// availabilityRow is one policy.
type availabilityRow struct {
	availability.Estimate
	// CopiedAfter is when a lost node's slices have their copies again.
	CopiedAfter time.Duration `json:"copied_after_ns"`
}

// availabilityFigures is what is written to the JSON.
type availabilityFigures struct {
	Assumptions availability.Figures `json:"assumptions"`
	From        map[string]string    `json:"from"`
	Policies    []availabilityRow    `json:"policies"`
	Papers      *paperRows           `json:"papers,omitempty"`
}

func runAvailability(ctx context.Context, env *experiment.Env) error {
	p, err := planAvailability(env)
	if err != nil {
		return err
	}
	figures := availabilityFigures{Assumptions: p.Figures, From: p.from}
	for _, policy := range p.policies {
		e, err := availability.Predict(p.Figures, policy)
		if err != nil {
			return err
		}
		after, _, err := p.Copying(policy)
		if err != nil {
			return err
		}
		figures.Policies = append(figures.Policies, availabilityRow{e, after})
	}
	f, err := env.Folder("availability", nil)
	if err != nil {
		return err
	}
	if p.papers {
		fmt.Fprintf(env.Progress, "availability: %d runs of each set-up of the papers, in virtual time\n", p.runs)
		if figures.Papers, err = playPapers(ctx, p); err != nil {
			return err
		}
	}
	return f.Finish(availabilityReport(p, figures), env.Out)
}

// played runs something once for each seed, as many at once as there are processors.
func played[T any](ctx context.Context, p availabilityPlan, run func(context.Context, uint64) (T, error)) ([]T, error) {
	out := make([]T, p.runs)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range out {
		g.Go(func() (err error) {
			out[i], err = run(ctx, p.seed+uint64(i))
			return err
		})
	}
	return out, g.Wait()
}

// figuresOf are a figure of each run.
func figuresOf[T any](runs []T, figure func(T) float64) []float64 {
	var v []float64
	for _, r := range runs {
		v = append(v, figure(r))
	}
	return v
}

// counted is the mean number of events in a run.
func counted[T any](runs []T, events func(T) int) reliability.Interval {
	return reliability.Counts(figuresOf(runs, func(r T) float64 { return float64(events(r)) }), availabilityConfidence)
}

// availabilityConfidence is how sure the intervals of simulations are.
const availabilityConfidence = 0.99

func availabilityReport(p availabilityPlan, figures availabilityFigures) report.Result {
	r := report.Result{
		Title: "availability: what to expect in a year",
		SetUp: fmt.Sprintf("Computed, not measured: %d nodes at %d sites fail independently, as the table of assumptions says. "+
			"A slice of three or more copies waits where fewer than two current ones can be reached, and any other where none can be.", p.Nodes, p.Sites),
		Notes: []string{
			"Bytes lost are those of slices without a copy. Of a slice with only an older copy, what was written since that copy went is lost.",
			"Geo-config is taken to be there: while it is away, no slice changes its members.",
			"The formulas hold for failures that are rare and independent. A fault of a program, or of its operator, on all nodes at once is neither.",
		},
		Tables: []report.Table{policyTable(p, figures.Policies), assumptionTable(p)},
		Plots:  policyPlots(figures.Policies), Figures: figures,
	}
	if figures.Papers != nil {
		figures.Papers.addTo(&r, p)
	}
	return r
}
