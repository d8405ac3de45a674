package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

func scale() experiment.Experiment {
	return experiment.Experiment{
		Name:    "scale",
		Summary: "a tree that grows to very many files: its metadata on disk and in memory, and at each size a listing, a snapshot, a takeover and a node's start",
		Settings: []experiment.Setting{
			{Name: "files", Default: "100000,1000000", Help: "files of the tree at which is measured, fewest first (200 and 600 in the short form); 10000000 takes about an hour and 15 GB"},
			{Name: "each", Default: "1000000", Help: "files of one folder (200 in the short form)"},
			{Name: "lease", Default: "3", Help: "lease, s (1 in the short form)"},
			{Name: "workers", Default: "64", Help: "workers that make the files"},
			{Name: "writers", Default: "4", Help: "writers beside the snapshot and the takeover"},
			{Name: "calm", Default: "5", Help: "seconds before the snapshot, and again before the kill (1 in the short form)"},
		},
		Run: runScale,
	}
}

// The sites: the actives are at the first, the writers at the second.
const (
	scaleHome  = "s1"
	scaleFolks = "s2"
	scaleLevel = 3 // members of every slice
)

// scalePlan is what is done, and over what.
type scalePlan struct {
	files            []int // of the tree, fewest first
	each             int   // files of one folder
	workers, writers int
	lease, calm      time.Duration
	limit            time.Duration // for everything to be normal again
}

// away is how long the killed node stays away: until another acts for sure.
func (p scalePlan) away() time.Duration { return 3 * p.lease }

// length is how long the writers work.
func (p scalePlan) length() time.Duration { return 2*p.calm + p.away() + p.lease }

func planScale(env *experiment.Env) (scalePlan, error) {
	const op fault.Op = "experiments.planScale"
	p := scalePlan{limit: 10 * time.Minute}
	counts, err := numbers(env.Text("files"), 1, 1e8)
	if err != nil {
		return p, err
	}
	v := map[string]float64{}
	for name, most := range map[string]float64{"each": 1e7, "lease": 30, "workers": 1024, "writers": 256, "calm": 600} {
		if v[name], err = env.Number(name); err != nil {
			return p, err
		}
		if !(v[name] >= 1 && v[name] <= most) {
			return p, fault.Errorf(fault.Usage, op, name, "%s=%s is not from 1 to %g", name, env.Text(name), most)
		}
	}
	if env.Short {
		counts, v["each"], v["lease"], v["calm"], v["workers"] = []float64{200, 600}, 200, 1, 1, min(v["workers"], 8)
	}
	for _, n := range counts {
		p.files = append(p.files, int(n))
	}
	slices.Sort(p.files)
	p.files = slices.Compact(p.files)
	p.each, p.workers, p.writers = int(v["each"]), int(v["workers"]), int(v["writers"])
	p.lease, p.calm = time.Duration(v["lease"]*float64(time.Second)), time.Duration(v["calm"]*float64(time.Second))
	return p, nil
}

// topology has three sites, near each other: it is the number of files that counts here.
func (p scalePlan) topology() (*topology.Topology, error) {
	var y strings.Builder
	fmt.Fprintf(&y, "name: scale\nlease: %d ms\ngeo_config: %s-1\nsites:\n", p.lease.Milliseconds(), scaleFolks)
	for i := range scaleLevel {
		fmt.Fprintf(&y, "  - name: s%d\n", i+1)
	}
	y.WriteString("wan: {rtt: 1 ms}\n")
	return described("scale", y.String())
}

// scaleRow is what was measured at one size of the tree.
type scaleRow struct {
	Files   int     `json:"files"`
	Added   int     `json:"added"`   // since the size before
	Made    float64 `json:"made_s"`  // how long that took
	Slices  int     `json:"slices"`  // of the cluster
	Objects uint64  `json:"objects"` // of the slice that the writers work in
	// Of the node that acts for the tree, in bytes: its files of metadata, its journal,
	// and the memory that is its own, after the listing.
	Meta    int64           `json:"meta_bytes"`
	Journal int64           `json:"journal_bytes"`
	Memory  int64           `json:"memory_bytes"`
	Listed  load.NameResult `json:"listed"` // the largest folder, through a mount without caches
	// Snapshot is how long making one took. Calm and Beside are the longest times without
	// an acknowledged change, before it and from then on, for the same length of time.
	Snapshot float64 `json:"snapshot_ms"`
	Calm     float64 `json:"longest_gap_calm_ms"`
	Beside   float64 `json:"longest_gap_snapshot_ms"`
	// Takeover is the longest time without an acknowledged change after the node of the
	// active was killed.
	Takeover float64 `json:"takeover_s"`
	// Of the node that was killed, from the order to start it, in seconds: until it was
	// ready, and until all slices were served with all members normal. Nil: not in time.
	Ready   float64      `json:"ready_s"`
	Whole   *float64     `json:"whole_s,omitempty"`
	Verdict load.Verdict `json:"verdict"` // on the writers' changes
}

func runScale(ctx context.Context, env *experiment.Env) error {
	p, err := planScale(env)
	if err != nil {
		return err
	}
	t, err := p.topology()
	if err != nil {
		return err
	}
	f, err := env.Folder("scale", t)
	if err != nil {
		return err
	}
	var rows []scaleRow
	o, err := withLab(ctx, env, f, t, func(ctx context.Context, b *bed) (err error) {
		rows, err = scaleIn(ctx, b, p, f.Path)
		b.final = slices.ContainsFunc(rows, func(r scaleRow) bool { return len(r.Verdict.Lost) > 0 })
		return err
	})
	if err != nil {
		return err
	}
	r := scaleReport(p, rows)
	return o.end(f, env, r, lost(rows, func(r scaleRow) (string, load.Verdict) { return fmt.Sprint(r.Files), r.Verdict }))
}
