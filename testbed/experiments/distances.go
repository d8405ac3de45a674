package experiments

import (
	"context"
	"fmt"
	"os"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

// atEach brings a lab up for each of some round trips, in milliseconds, with the
// topology that is made of it and kept in the folder of the run. It returns what fn
// found at all of them, and how that went.
func atEach[R any](ctx context.Context, env *experiment.Env, f *report.Folder, rtts []float64, of func(rtt float64) (*topology.Topology, error),
	fn func(ctx context.Context, b *bed, rtt float64) ([]R, error)) (all []R, went outcome, err error) {
	var voids []string
	for _, rtt := range rtts {
		t, err := of(rtt)
		if err != nil {
			return all, went, err
		}
		if err := os.WriteFile(f.Path(fmt.Sprintf("topology-%gms.yaml", rtt)), t.YAML(), 0o644); err != nil {
			return all, went, fault.FromOS("experiments.atEach", f.Dir(), err)
		}
		var found []R
		out, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
			found, err = fn(ctx, b, rtt)
			return err
		})
		if err != nil {
			return all, went, err
		}
		all = append(all, found...)
		if out.void != "" {
			voids = append(voids, fmt.Sprintf("%g ms: %s", rtt, out.void))
		}
		for _, v := range out.earlier {
			went.earlier = append(went.earlier, fmt.Sprintf("%g ms: %s", rtt, v))
		}
	}
	went.void = strings.Join(voids, "; ")
	return all, went, nil
}
