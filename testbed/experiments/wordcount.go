package experiments

import (
	"context"
	"slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

func wordcount() experiment.Experiment {
	return experiment.Experiment{
		Name:    "wordcount",
		Summary: "programs on four hosts count the words of texts on their mounts: undisturbed, and while the active that holds the texts is killed",
		Settings: []experiment.Setting{
			{Name: "files", Default: "120", Help: "texts (12 in the short form)"},
			{Name: "bytes", Default: "2097152", Help: "bytes of each text (32768 in the short form)"},
			{Name: "rounds", Default: "3", Help: "counts of each kind, in turns (1 in the short form)"},
			{Name: "lease", Default: "3", Help: "lease, s (1 in the short form)"},
			{Name: "rtt", Default: "1", Help: "round trip between the five sites, ms"},
		},
		Run: runWordcount,
	}
}

func runWordcount(ctx context.Context, env *experiment.Env) error {
	p, err := planWordcount(env)
	if err != nil {
		return err
	}
	t, err := p.failures.topology(p.failures.leases[0])
	if err != nil {
		return err
	}
	f, err := env.Folder("wordcount", t)
	if err != nil {
		return err
	}
	var rows []wordcountRow
	wrong := func(r wordcountRow) bool { return !r.Right }
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		rows, err = p.rows(ctx, b, f.Path)
		b.final = slices.ContainsFunc(rows, wrong)
		return err
	})
	if err != nil {
		return err
	}
	r := wordcountReport(p, rows)
	out.mark(&r)
	if err := f.Finish(r, env.Out); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, wrong) {
		return fault.E(fault.Corrupt, "experiments.runWordcount", "the merged counts", "are not those of the texts: the table says of which run")
	}
	return nil
}
