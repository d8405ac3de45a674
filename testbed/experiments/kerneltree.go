package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/load"
	"cartwheel.dev/testbed/topology"
)

const juiceSource = "JuiceFS with its metadata 22 ms away: 5 to 10 metadata operations a second, one by one (docs/experiments.md, Figures of others)"

func kerneltree() experiment.Experiment {
	return experiment.Experiment{
		Name:    "kerneltree",
		Summary: "copy, list, grep and delete a source tree whose home is 22 ms and 100 ms away",
		Settings: []experiment.Setting{
			{Name: "source", Default: "", Help: "directory of the tree (Go's own sources)"},
			{Name: "files", Default: "400", Help: "files of it that are used (60 in the short form)"},
			{Name: "workers", Default: "16", Help: "workers of the parallel rounds"},
			{Name: "rtts", Default: "22,100", Help: "round trips to the tree's home, ms (22 in the short form)"},
		},
		Run: runKerneltree,
	}
}

// treeLayout is where the replicas of the tree are.
type treeLayout struct {
	Name string
	cues string
}

// treeLayouts: at one site, as those have it who keep their metadata in one
// place, or with a replica at the reader's site too.
func treeLayouts() []treeLayout {
	return []treeLayout{
		{"home only", ".Site=home/.RepSites=1"},
		{"home and here", ".Site=home/.RepSites=2"},
	}
}

// treeRow is one work, done once.
type treeRow struct {
	RTT    float64 `json:"rtt_ms"`
	Layout string  `json:"replicas"`
	load.TreeResult
	// Counts are the mount's, by kind of file operation; none if it does not
	// count.
	Counts []count `json:"counts,omitempty"`
}

// trips is how many WAN round trips there were for a file; NaN if not counted.
func (r treeRow) trips() float64 {
	if r.Counts == nil {
		return nan()
	}
	n := 0
	for _, c := range r.Counts {
		n += c.WAN
	}
	return float64(n) / float64(r.Files)
}

// treeTopology is a home of three nodes, and one node where the work is done.
func treeTopology(rtt float64) (*topology.Topology, error) {
	return described("kerneltree", fmt.Sprintf(`
name: kerneltree-%gms
sites:
  - {name: home, nodes: 3}
  - {name: here, nodes: 1}
wan: {rtt: %g ms}
`, rtt, rtt))
}

func runKerneltree(ctx context.Context, env *experiment.Env) error {
	files, err := env.Number("files")
	if err != nil {
		return err
	}
	workers, err := env.Number("workers")
	if err != nil {
		return err
	}
	rtts, err := numbers(env.Text("rtts"), 0.1, 5000)
	if err != nil {
		return err
	}
	if env.Short {
		files, rtts = min(files, 60), rtts[:1]
	}
	stage, err := os.MkdirTemp("", "tree-")
	if err != nil {
		return fault.FromOS("experiments.kerneltree", "", err)
	}
	defer os.RemoveAll(stage)
	source, err := sources(ctx, env.Text("source"))
	if err != nil {
		return err
	}
	stage = filepath.Join(stage, "tree")
	tree, err := load.Stage(ctx, source, stage, int(files))
	if err != nil {
		return err
	}
	first, err := treeTopology(rtts[0])
	if err != nil {
		return err
	}
	f, err := env.Folder("kerneltree", first)
	if err != nil {
		return err
	}
	rows, went, err := atEach(ctx, env, f, rtts, treeTopology, func(ctx context.Context, b *bed, rtt float64) ([]treeRow, error) {
		return treeRounds(ctx, b, rtt, stage, int(workers))
	})
	if err != nil {
		return err
	}
	r := treeReport(rows, tree)
	return went.end(f, env, r, nil)
}

// sources finds the tree: what was named, else Go's.
func sources(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fault.Wrap(fault.NotFound, "experiments.sources", "go env GOROOT", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

// treeRounds does all works, with tools one by one and with workers, for each
// layout of the replicas.
func treeRounds(ctx context.Context, b *bed, rtt float64, stage string, workers int) ([]treeRow, error) {
	here, err := b.at("here")
	if err != nil {
		return nil, err
	}
	home, err := b.at("home")
	if err != nil {
		return nil, err
	}
	counted := here.counts(ctx)
	var rows []treeRow
	for i, l := range treeLayouts() {
		folder := fmt.Sprintf("trees-%d", i)
		if err := mkdir(ctx, filepath.Join(here.mount, l.cues, folder)); err != nil {
			return rows, err
		}
		for _, w := range []int{0, workers} {
			target := fmt.Sprintf("%s/copy-%d", folder, w)
			for _, work := range load.TreeWorks() {
				b.say("kerneltree: %g ms, replicas %s, %d workers: %s", rtt, l.Name, w, work)
				if err := here.cold(ctx); err != nil {
					return rows, err
				}
				r := treeRow{RTT: rtt, Layout: l.Name}
				args := []string{"tree", string(work), filepath.Join(here.mount, target), "--source", stage, "--workers", strconv.Itoa(w)}
				if counted {
					r.Counts, err = here.traced(ctx, &r.TreeResult, args...)
				} else {
					err = here.work(ctx, &r.TreeResult, args...)
				}
				if err != nil {
					return rows, err
				}
				r.Files = max(r.Files, treeFiles(rows, r)) // tools do not say how many they met
				rows = append(rows, r)
				if work == load.CopyTree {
					if err := sameAtHome(ctx, stage, filepath.Join(home.mount, target)); err != nil {
						return rows, err
					}
				}
			}
		}
	}
	return rows, nil
}

// treeFiles is how many files the copy had that this work was done on.
func treeFiles(rows []treeRow, r treeRow) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Work == load.CopyTree && rows[i].Workers == r.Workers {
			return rows[i].Files
		}
	}
	return 0
}

// sameAtHome looks at a copy where its home is: what cp acknowledged is there.
func sameAtHome(ctx context.Context, stage, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return load.SameTree(ctx, stage, target, 8)
}

// counts tells whether the place's mount counts round trips.
func (p place) counts(ctx context.Context) bool {
	_, err := p.run(ctx, p.programs.Cartwheel, "trace", "--help")
	return err == nil
}
