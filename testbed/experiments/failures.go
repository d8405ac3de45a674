package experiments

import (
	"context"
	"fmt"
	"slices"

	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
)

func failures() experiment.Experiment {
	return experiment.Experiment{
		Name:    "failures",
		Summary: "writers while the active is killed, paused, unplugged or restarted, and while two members of three and of five fail one after the other",
		Settings: []experiment.Setting{
			{Name: "leases", Default: "3,1", Help: "leases, s, each in a lab of its own (the last in the short form)"},
			{Name: "faults", Default: failuresAll, Help: "failures, one after the other (of all, the last in the short form)"},
			{Name: "rtt", Default: "20", Help: "round trip between the five sites, ms (5 in the short form)"},
			{Name: "calm", Default: "10", Help: "seconds before the failure (1 in the short form)"},
			{Name: "away", Default: "15", Help: "seconds until the node returns; three leases at least (3 in the short form)"},
			{Name: "after", Default: "20", Help: "seconds after the last return (1 in the short form)"},
			{Name: "workers", Default: "4", Help: "writers at each of two sites"},
			{Name: "bytes", Default: "2048", Help: "bytes of each file"},
		},
		Run: runFailures,
	}
}

func runFailures(ctx context.Context, env *experiment.Env) error {
	p, err := planFailures(env)
	if err != nil {
		return err
	}
	t, err := p.topology(p.leases[0])
	if err != nil {
		return err
	}
	f, err := env.Folder("failures", t)
	if err != nil {
		return err
	}
	var rows []failuresRow
	var o outcome
	for _, lease := range p.leases {
		t, err := p.topology(lease)
		if err != nil {
			return err
		}
		var got []failuresRow
		out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
			got, err = failuresIn(ctx, b, p, lease, f.Path)
			b.final = slices.ContainsFunc(got, func(r failuresRow) bool { return len(r.Verdict.Lost) > 0 })
			return err
		})
		if err != nil {
			return err
		}
		rows = append(rows, got...)
		o.add(fmt.Sprintf("lease %v", lease), out)
	}
	r := failuresReport(p, rows)
	return o.end(f, env, r, lost(rows, func(r failuresRow) (string, load.Verdict) { return string(r.Kind), r.Verdict }))
}
