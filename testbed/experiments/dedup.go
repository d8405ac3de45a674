package experiments

import (
	"context"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

func dedup() experiment.Experiment {
	return experiment.Experiment{
		Name:    "dedup",
		Summary: "what chunks save on real trees, and how fast they are cut: the product's content-defined chunks and fixed ones of several sizes, without a lab",
		Settings: []experiment.Setting{
			{Name: "trees", Help: "directories, joined by commas; none: Go's sources and the versions of a module in Go's module cache (a generated tree in the short form)"},
			{Name: "module", Default: "golang.org/x/tools", Help: "the module, where no trees are named"},
			{Name: "fixed", Default: "4,16,64,256,1024", Help: "sizes of fixed chunks, KiB, to compare with"},
		},
		Run: runDedup,
	}
}

func runDedup(ctx context.Context, env *experiment.Env) error {
	const op fault.Op = "experiments.runDedup"
	p, err := planDedup(env)
	if err != nil {
		return err
	}
	f, err := env.Folder("dedup", nil)
	if err != nil {
		return err
	}
	switch {
	case len(p.trees) > 0:
	case env.Short:
		dir, err := os.MkdirTemp("", "dedup-")
		if err != nil {
			return fault.FromOS(op, "", err)
		}
		defer os.RemoveAll(dir)
		if p.trees, err = generatedTrees(dir, env.Seed); err != nil {
			return err
		}
	default:
		if p.trees, err = goTrees(ctx, p.module); err != nil {
			return err
		}
	}
	var found dedupFound
	for _, way := range dedupWays() {
		got, err := p.measure(ctx, way, env.Progress)
		if err != nil {
			return err
		}
		found.Rows = append(found.Rows, got.Rows...)
		found.Trees = append(found.Trees, got.Trees...)
	}
	return f.Finish(dedupReport(p, found), env.Out)
}
