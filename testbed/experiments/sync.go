package experiments

import (
	"context"
	"fmt"
	"slices"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func syncExperiment() experiment.Experiment {
	return experiment.Experiment{
		Name:    "sync",
		Summary: "how long a standby takes to be normal again by what it missed, and how long writers wait for a takeover by the size of the slice",
		Settings: []experiment.Setting{
			{Name: "missed", Default: "100,1000,10000", Help: "files that are created while the standby is away (20 in the short form)"},
			{Name: "objects", Default: "1000,10000,100000", Help: "files in the slice whose active is killed, each in a slice of its own (50 in the short form)"},
			{Name: "lease", Default: "3", Help: "lease, s (1 in the short form)"},
			{Name: "rtt", Default: "1", Help: "round trip between the five sites, ms"},
			{Name: "workers", Default: "16", Help: "workers that create the files (2 in the short form)"},
		},
		Run: runSync,
	}
}

func runSync(ctx context.Context, env *experiment.Env) error {
	p, err := planSync(env)
	if err != nil {
		return err
	}
	t, err := p.failures.topology(p.lease())
	if err != nil {
		return err
	}
	f, err := env.Folder("sync", t)
	if err != nil {
		return err
	}
	var missed []syncMissed
	var sizes []syncSize
	out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		if missed, err = p.missedAll(ctx, b, f.Path); err != nil {
			return err
		}
		sizes, err = p.sizesAll(ctx, b, f.Path)
		b.final = slices.ContainsFunc(sizes, func(s syncSize) bool { return len(s.Failure.Verdict.Lost) > 0 })
		return err
	})
	if err != nil {
		return err
	}
	r := syncReport(p, missed, sizes)
	return out.end(f, env, r, lost(sizes, func(s syncSize) (string, load.Verdict) { return fmt.Sprint(s.Objects), s.Failure.Verdict }))
}
