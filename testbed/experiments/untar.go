package experiments

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/experiment"
	"cartwheel.dev/testbed/report"
	"cartwheel.dev/testbed/topology"
)

func untar() experiment.Experiment {
	return experiment.Experiment{
		Name:    "untar",
		Summary: "unpack, compile and delete a source tree, with replicas 22, 100 and 300 ms away",
		Settings: []experiment.Setting{
			{Name: "package", Default: "fmt", Help: "package of Go's own sources that is compiled; its dependencies are the tree (errors in the short form)"},
			{Name: "rtts", Default: "22,100,300", Help: "round trips to the other replicas, ms (5 in the short form)"},
		},
		Run: runUntar,
	}
}

// untarWay is where the tree is unpacked, and how.
type untarWay struct {
	Name  string `json:"way"`
	local bool
	cue   string // in the path of what is unpacked
}

func untarWays() []untarWay {
	return []untarWay{
		{Name: "a local folder", local: true},
		{Name: "mount"},
		{Name: "mount, .SyncLevel=0", cue: ".SyncLevel=0"},
	}
}

// untarRow is one way at one distance: how long each program took.
type untarRow struct {
	untarWay
	RTT     float64 `json:"rtt_ms"`
	Files   int     `json:"files"` // and folders
	Unpack  float64 `json:"unpack_s"`
	Saved   float64 `json:"saved_s"` // until fsync of the folder returned behind it
	Compile float64 `json:"compile_s"`
	Delete  float64 `json:"delete_s"`
}

// untarTopology is three sites of one node each.
func untarTopology(rtt float64) (*topology.Topology, error) {
	return described("untar", fmt.Sprintf(`
name: untar-%gms
sites:
  - name: here
  - name: second
  - name: third
wan: {rtt: %g ms}
`, rtt, rtt))
}

func runUntar(ctx context.Context, env *experiment.Env) error {
	rtts, err := numbers(env.Text("rtts"), 0.1, 5000)
	if err != nil {
		return err
	}
	pkg := env.Text("package")
	if env.Short {
		rtts, pkg = []float64{5}, "errors"
	}
	stage, err := os.MkdirTemp("", "untar-")
	if err != nil {
		return fault.FromOS("experiments.untar", "", err)
	}
	defer os.RemoveAll(stage)
	a, err := pack(ctx, pkg, stage)
	if err != nil {
		return err
	}
	first, err := untarTopology(rtts[0])
	if err != nil {
		return err
	}
	f, err := env.Folder("untar", first)
	if err != nil {
		return err
	}
	rows, went, err := atEach(ctx, env, f, rtts, untarTopology, func(ctx context.Context, b *bed, rtt float64) ([]untarRow, error) {
		return untarRounds(ctx, b, rtt, a)
	})
	if err != nil {
		return err
	}
	r := untarReport(rows, a)
	return went.end(f, env, r, nil)
}

// archive is a source tree, packed.
type archive struct {
	pkg    string
	goroot string // of the compiler
	stage  string
	file   string
	count  int // files and folders
	bytes  int64
}

// pack packs the sources of a package of Go's own and of all that it needs, without
// tests.
func pack(ctx context.Context, pkg, stage string) (archive, error) {
	const op fault.Op = "experiments.pack"
	a := archive{pkg: pkg, stage: stage, file: filepath.Join(stage, "src.tar")}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return a, fault.Wrap(fault.NotFound, op, "go env GOROOT", err)
	}
	a.goroot = strings.TrimSpace(string(out))
	out, err = exec.CommandContext(ctx, "go", "list", "-deps", pkg).Output()
	if err != nil {
		return a, fault.Wrap(fault.NotFound, op, "go list -deps "+pkg, err)
	}
	args := []string{"-C", a.goroot, "--exclude=*_test.go", "--exclude=testdata", "--no-recursion", "-cf", a.file}
	deps := append(strings.Fields(string(out)), "runtime/cgo") // whose headers the runtime's assembler reads
	for i, dep := range deps {
		if slices.Contains(deps[:i], dep) {
			continue
		}
		dir := filepath.Join("src", dep)
		list, err := os.ReadDir(filepath.Join(a.goroot, dir))
		if err != nil {
			continue // part of the compiler
		}
		a.count++
		args = append(args, dir)
		for _, e := range list {
			if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), "_test.go") {
				args = append(args, filepath.Join(dir, e.Name()))
				a.count++
			}
		}
	}
	if out, err := exec.CommandContext(ctx, "tar", args...).CombinedOutput(); err != nil {
		return a, fault.Wrap(fault.Other, op, "tar: "+string(out), err)
	}
	info, err := os.Stat(a.file)
	if err == nil {
		a.bytes = info.Size()
	}
	return a, fault.FromOS(op, a.file, err)
}

func untarRounds(ctx context.Context, b *bed, rtt float64, a archive) ([]untarRow, error) {
	here, err := b.at("here")
	if err != nil {
		return nil, err
	}
	var rows []untarRow
	for i, w := range untarWays() {
		folder := filepath.Join(here.mount, fmt.Sprint("tree-", i))
		if w.local {
			folder = filepath.Join(a.stage, fmt.Sprint("tree-", rtt))
		}
		if err := mkdir(ctx, folder); err != nil {
			return rows, err
		}
		b.say("untar: %g ms, %s", rtt, w.Name)
		r, err := untarOnce(ctx, here, w, folder, a)
		if err != nil {
			return rows, err
		}
		r.RTT = rtt
		rows = append(rows, r)
	}
	return rows, nil
}

// untarOnce unpacks, compiles and deletes in one way. The compiler finds the
// sources in the folder, all else where it is installed, and has a cache of its own.
func untarOnce(ctx context.Context, p place, w untarWay, folder string, a archive) (untarRow, error) {
	r := untarRow{untarWay: w, Files: a.count}
	for _, name := range []string{"bin", "pkg", "lib", "VERSION", "go.env"} {
		if err := os.Symlink(filepath.Join(a.goroot, name), filepath.Join(folder, name)); err != nil {
			return r, fault.FromOS("experiments.untar", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "ready"), nil, 0o644); err != nil { // the folder's slice is known by now
		return r, fault.FromOS("experiments.untar", "ready", err)
	}
	cache, err := os.MkdirTemp(a.stage, "cache-")
	if err != nil {
		return r, fault.FromOS("experiments.untar", "", err)
	}
	for _, do := range []struct {
		took *float64
		argv []string
	}{
		{&r.Unpack, []string{"tar", "-xf", a.file, "-C", filepath.Join(folder, w.cue)}},
		{&r.Saved, []string{"sync", folder}},
		{&r.Compile, []string{"env", "GOROOT=" + folder, "GOCACHE=" + cache, "GOFLAGS=", "GOTOOLCHAIN=local", "GO111MODULE=off",
			filepath.Join(a.goroot, "bin", "go"), "build", "-o", os.DevNull, a.pkg}},
		{&r.Delete, []string{"rm", "-r", filepath.Join(folder, "src")}},
	} {
		began := time.Now()
		if _, err := p.run(ctx, do.argv...); err != nil {
			return r, err
		}
		*do.took = time.Since(began).Seconds()
	}
	r.Saved += r.Unpack
	return r, nil
}

func untarReport(rows []untarRow, a archive) report.Result {
	t := report.Table{Name: "speed", Title: "A source tree unpacked, compiled and deleted", Columns: []report.Column{
		{Name: "RTT", Unit: "ms"}, {Name: "where"}, {Name: "unpacked", Unit: "s"}, {Name: "files", Unit: "per s"}, {Name: "unpacked and saved", Unit: "s"},
		{Name: "compiled", Unit: "s"}, {Name: "deleted", Unit: "s"}, {Name: "names removed", Unit: "per s"},
		{Name: "JuiceFS, metadata", Unit: "op/s", Source: juiceSource},
	}}
	plots := []report.Plot{
		{Name: "unpacked", Title: "Files unpacked a second", X: report.Axis{Label: "round trip between sites, ms", FromZero: true}, Y: report.Axis{Label: "files, /s", Log: true}},
		{Name: "deleted", Title: "Names removed a second", X: report.Axis{Label: "round trip between sites, ms", FromZero: true}, Y: report.Axis{Label: "names, /s", Log: true}},
	}
	for _, r := range rows {
		theirs := report.None()
		if r.RTT == 22 && !r.local {
			theirs = report.Text("5-10")
		}
		unpacked, deleted := float64(r.Files)/r.Unpack, float64(r.Files)/r.Delete
		t.Add(report.Number(r.RTT), report.Text(r.Name), report.Number(r.Unpack), report.Number(unpacked), report.Number(r.Saved), report.Number(r.Compile),
			report.Number(r.Delete), report.Number(deleted), theirs)
		addUntarPoint(&plots[0], r, unpacked)
		addUntarPoint(&plots[1], r, deleted)
	}
	return report.Result{
		Title: "untar: a source tree whose replicas are far away",
		SetUp: fmt.Sprintf("The sources of Go's package %s and of what it needs: %d files and folders, %.1f MB. Three sites of one node, a replica at each; "+
			"tar, sync, the Go compiler with an empty cache, and rm -r run one after the other at the site of the tree's home.", a.pkg, a.count, float64(a.bytes)/1e6),
		Tables: []report.Table{t}, Plots: plots, Figures: rows,
	}
}

// addUntarPoint adds a point to the line of where the tree was unpacked.
func addUntarPoint(p *report.Plot, r untarRow, rate float64) {
	i := slices.IndexFunc(p.Lines, func(l report.Line) bool { return l.Name == r.Name })
	if i < 0 {
		i = len(p.Lines)
		p.Lines = append(p.Lines, report.Line{Name: r.Name, Dashed: r.local})
	}
	p.Lines[i].X, p.Lines[i].Y = append(p.Lines[i].X, r.RTT), append(p.Lines[i].Y, rate)
}
