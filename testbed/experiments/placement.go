package experiments

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/desktops"
	"cartwheel.dev/testbed/experiment"
)

func placementExperiment() experiment.Experiment {
	d := desktops.Defaults()
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return experiment.Experiment{
		Name:    "placement",
		Summary: "which share of reads is local in an office of desktops whose users move: BeeFS's rules, Cartwheel's and random ones, simulated",
		Settings: []experiment.Setting{
			{Name: "seeds", Default: "5", Help: "traces for each probability, 1 to 100 (2 in the short form)"},
			{Name: "moves", Default: "0.2,0.5,0.8", Help: "probabilities that a user logs in at another machine"},
			{Name: "months", Default: text(d.Months), Help: "how long the trace is (0.5 in the short form)"},
			{Name: "desktops", Default: text(float64(d.Desktops)), Help: "machines, each with a disk and the desk of one user"},
			{Name: "full", Default: text(float64(d.Full)), Help: "desktops whose disk is full at the start"},
			{Name: "disk-gb", Default: text(float64(d.DiskBytes) / 1e9), Help: "size of each disk, GB (0.5 in the short form)"},
			{Name: "fill", Default: text(d.Fill), Help: "share of each disk that holds what is not the file system's"},
			{Name: "copies", Default: text(float64(d.Copies)), Help: "copies of each file, 1 to 3"},
			{Name: "coherence", Default: text(d.Coherence.Seconds()), Help: "seconds from a close until secondaries are made or brought up to date"},
			{Name: "locality", Default: text(d.Habits.Locality), Help: "exponent of Zipf's law by which users open their files again; 0: any file alike"},
			{Name: "login-days", Default: text(float64(d.Habits.LoginDays)), Help: "working days that one login lasts"},
			{Name: "opens", Default: text(d.Habits.Opens), Help: "files that a user opens on a working day"},
			{Name: "files", Default: text(float64(d.Habits.Files)), Help: "files that each user has at the start (200 in the short form)"},
		},
		Run: runPlacement,
	}
}

// placementPlan is what is simulated: one set of options, for each seed and
// probability.
type placementPlan struct {
	desktops.Options
	seeds    int
	moves    []float64
	variants []placementVariant
}

// placementVariant changes one assumption about the users.
type placementVariant struct {
	name   string
	change func(*desktops.Habits)
}

func placementVariants() []placementVariant {
	return []placementVariant{
		{"locality 0.7", func(h *desktops.Habits) { h.Locality = 0.7 }},
		{"locality 2", func(h *desktops.Habits) { h.Locality = 2 }},
		{"a login lasts 20 working days", func(h *desktops.Habits) { h.LoginDays = 20 }},
		{"both: 20 days and locality 2", func(h *desktops.Habits) { h.LoginDays, h.Locality = 20, 2 }},
		{"ten files at the start", func(h *desktops.Habits) { h.Files = 10 }},
		{"users stay where they moved", func(h *desktops.Habits) { h.Stays = true }},
	}
}

func planPlacement(env *experiment.Env) (placementPlan, error) {
	const op fault.Op = "experiments.planPlacement"
	p := placementPlan{Options: desktops.Defaults()}
	v := map[string]float64{}
	for _, s := range placementExperiment().Settings {
		if s.Name == "moves" {
			continue
		}
		n, err := env.Number(s.Name)
		if err != nil {
			return p, err
		}
		v[s.Name] = n
	}
	for _, name := range []string{"seeds", "desktops", "full", "copies", "login-days", "files"} {
		if v[name] != math.Trunc(v[name]) || math.Abs(v[name]) > 1e6 {
			return p, fault.Errorf(fault.Usage, op, name, "%q is no whole number up to a million", env.Text(name))
		}
	}
	var err error
	if p.moves, err = numbers(env.Text("moves"), 0, 1); err != nil {
		return p, fault.Wrap(fault.Usage, op, "moves", err)
	}
	if v["seeds"] < 1 || v["seeds"] > 100 {
		return p, fault.E(fault.Usage, op, "seeds", "there is one trace at least for each probability, and 100 at most")
	}
	p.variants = placementVariants()
	if env.Short {
		p.variants = nil
		v["seeds"], v["months"], v["disk-gb"], v["files"] = min(v["seeds"], 2), min(v["months"], 0.5), min(v["disk-gb"], 0.5), min(v["files"], 200)
	}
	p.seeds, p.Seed = int(v["seeds"]), env.Seed
	p.Months, p.Desktops, p.Full, p.Fill, p.Copies = v["months"], int(v["desktops"]), int(v["full"]), v["fill"], int(v["copies"])
	p.DiskBytes, p.Coherence = int64(v["disk-gb"]*1e9), time.Duration(v["coherence"]*float64(time.Second))
	p.Habits.Locality, p.Habits.LoginDays, p.Habits.Opens, p.Habits.Files = v["locality"], int(v["login-days"]), v["opens"], int(v["files"])
	return p, p.Validate()
}

// placementRow is one trace.
type placementRow struct {
	Variant string `json:"variant,omitempty"` // empty: the assumptions of the settings
	desktops.Result
}

func runPlacement(ctx context.Context, env *experiment.Env) error {
	p, err := planPlacement(env)
	if err != nil {
		return err
	}
	f, err := env.Folder("placement", nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Progress, "placement: %g months of %d desktops in virtual time, %d seeds\n", p.Months, p.Desktops, p.seeds)
	rows, err := placementRows(ctx, p)
	if err != nil {
		return err
	}
	return f.Finish(placementReport(p, rows), env.Out)
}

// placementRows simulates all traces, as many at once as there are processors.
func placementRows(ctx context.Context, p placementPlan) ([]placementRow, error) {
	type trace struct {
		variant  string
		options  desktops.Options
		policies []desktops.Policy
	}
	var traces []trace
	for _, move := range p.moves {
		o := p.Options
		o.Move = move
		for i := range p.seeds {
			o.Seed = p.Seed + uint64(i)
			traces = append(traces, trace{"", o, desktops.Policies()})
		}
		for _, v := range p.variants {
			o := p.Options
			o.Move = move
			v.change(&o.Habits)
			traces = append(traces, trace{v.name, o, []desktops.Policy{desktops.BeeLRU}})
		}
	}
	rows := make([]placementRow, len(traces))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(runtime.GOMAXPROCS(0), 8)) // each takes some hundred megabytes
	for i, t := range traces {
		g.Go(func() error {
			r, err := desktops.Run(ctx, t.options, t.policies)
			rows[i] = placementRow{t.variant, r}
			return err
		})
	}
	return rows, g.Wait()
}
