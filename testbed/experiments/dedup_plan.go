package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
)

// dedupPlan is what is cut, and how.
type dedupPlan struct {
	trees  []string
	module string
	cuts   []dedupCut // the product's first
}

func planDedup(env *experiment.Env) (dedupPlan, error) {
	const op fault.Op = "experiments.planDedup"
	p := dedupPlan{module: env.Text("module"), cuts: []dedupCut{{Name: "product"}}}
	sizes, err := numbers(env.Text("fixed"), 1, 1<<14)
	if err != nil {
		return p, err
	}
	slices.Sort(sizes)
	for _, kib := range slices.Compact(sizes) {
		p.cuts = append(p.cuts, dedupCut{Name: fmt.Sprintf("fixed, %g KiB", kib), Fixed: int(kib * 1024)})
	}
	if env.Text("trees") == "" {
		if p.module == "" {
			return p, fault.E(fault.Usage, op, "module", "is empty: name a module, or trees")
		}
		return p, nil
	}
	for _, tree := range strings.Split(env.Text("trees"), ",") {
		info, err := os.Stat(tree)
		if err != nil || !info.IsDir() {
			return p, fault.Errorf(fault.Usage, op, "trees", "%q is no directory", tree)
		}
		p.trees = append(p.trees, tree)
	}
	return p, nil
}

// goTrees are Go's own sources, and the versions of a module in the module cache.
func goTrees(ctx context.Context, module string) ([]string, error) {
	const op fault.Op = "experiments.goTrees"
	out, err := exec.CommandContext(ctx, "go", "env", "-json", "GOROOT", "GOMODCACHE").Output()
	var at struct{ GOROOT, GOMODCACHE string }
	if err == nil {
		err = json.Unmarshal(out, &at)
	}
	if err != nil {
		return nil, fault.Errorf(fault.NotFound, op, "go env", "does not tell where Go's sources are (%v): name trees with --set trees=DIR1,DIR2", err)
	}
	versions, err := filepath.Glob(filepath.Join(at.GOMODCACHE, module+"@v*"))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, op, module, err)
	}
	if len(versions) < 2 {
		return nil, fault.Errorf(fault.NotFound, op, module, "has %d versions in the module cache, and two are compared at least: run `go mod download %s@VERSION` for each, or name trees with --set trees=DIR1,DIR2",
			len(versions), module)
	}
	return append([]string{filepath.Join(at.GOROOT, "src")}, versions...), nil
}

// generatedTrees makes two versions of a small tree: in the second some files are the
// same, some have a line more, and some are new.
func generatedTrees(dir string, seed uint64) ([]string, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	var trees []string
	for _, version := range []string{"v1", "v2"} {
		trees = append(trees, filepath.Join(dir, version))
		if err := os.Mkdir(trees[len(trees)-1], 0o755); err != nil {
			return nil, fault.FromOS("experiments.generatedTrees", dir, err)
		}
	}
	for i := range 40 {
		data := make([]byte, 1<<10<<(i%10)) // up to 512 KiB
		for at := range data {
			data[at] = byte(r.Uint64())
		}
		later := data
		switch i % 4 {
		case 0:
			later = append([]byte("a line that is new\n"), data...)
		case 1:
			later = slices.Concat(data, data[:len(data)/2])
		}
		for version, content := range [][]byte{data, later} {
			if err := os.WriteFile(filepath.Join(trees[version], fmt.Sprintf("file-%02d", i)), content, 0o644); err != nil {
				return nil, fault.FromOS("experiments.generatedTrees", dir, err)
			}
		}
	}
	return trees, nil
}
