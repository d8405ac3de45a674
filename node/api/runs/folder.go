package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Bounds of the list.
const (
	// maxEntries bounds the entries of the folder that are looked at. Of more, the
	// list has some.
	maxEntries = 10_000
	// maxRuns bounds the list. Of more, it has the newest ones.
	maxRuns = 500
)

// figureEnd ends the name of a picture's file.
const figureEnd = ".svg"

var figureName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.svg$`)

func isFigure(name string) bool { return figureName.MatchString(name) }

// Folder is a folder of runs. The zero value and one of an empty path have none.
type Folder struct {
	dir string

	mu    sync.Mutex // held while the list is made
	known map[string]known
}

// known is what was read of a run while its files were as they are.
type known struct {
	stamp   stamp
	summary RunSummary
}

// stamp changes when one of a run's files does.
type stamp struct {
	run, report, topology time.Time
	bytes                 int64
}

// New returns the folder of runs at a path, which need not be there yet. Empty: it
// has no runs.
func New(dir string) *Folder { return &Folder{dir: dir} }

// open opens the folder; nil: there is none.
func (f *Folder) open(op fault.Op) (*os.Root, error) {
	if f.dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, fault.FromOS(op, "experiments", err)
}

// List lists the runs, the newest first. A folder that is not there has none.
// Errors: those of reading the folder itself; those of a run are in the list.
func (f *Folder) List(ctx context.Context) (RunList, error) {
	const op fault.Op = "runs.List"
	out := RunList{Folder: f.dir, Items: []RunSummary{}}
	root, err := f.open(op)
	if err != nil || root == nil {
		return out, err
	}
	defer root.Close()
	found, err := candidates(root)
	if err != nil {
		return out, fault.FromOS(op, "experiments", err)
	}
	out.Total = len(found)
	f.mu.Lock()
	defer f.mu.Unlock()
	next := map[string]known{}
	for _, info := range found[:min(len(found), maxRuns)] {
		if err := ctx.Err(); err != nil {
			return out, fault.Wrap(fault.TimedOut, op, "experiments", err)
		}
		k := f.summarizeLocked(root, info)
		next[info.Name()] = k
		out.Items = append(out.Items, k.summary)
	}
	f.known = next
	slices.SortStableFunc(out.Items, func(a, b RunSummary) int { return startOf(b).Compare(startOf(a)) })
	return out, nil
}

// startOf is when a run started, or the beginning of time.
func startOf(s RunSummary) time.Time {
	if s.StartedAt == nil {
		return time.Time{}
	}
	return *s.StartedAt
}

// candidates are the folder's entries that may be runs, the ones changed last first.
// Ordinary files are none.
func candidates(root *os.Root) ([]fs.FileInfo, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var out []fs.FileInfo
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".")
		info, err := e.Info()
		if err != nil || hidden || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue // it is gone, or no run
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return out, nil
}

// summarizeLocked reads a run, unless it is as it was. f.mu is held.
func (f *Folder) summarizeLocked(root *os.Root, info fs.FileInfo) known {
	name := info.Name()
	if !info.IsDir() {
		return known{summary: damaged(name, errors.New("it is a symbolic link, which is not followed"))}
	}
	s := stampOf(root, name)
	if k, ok := f.known[name]; ok && k.stamp == s {
		return k
	}
	run, _ := read(root, name, false)
	return known{stamp: s, summary: run.RunSummary}
}

func stampOf(root *os.Root, name string) stamp {
	var s stamp
	for _, x := range []struct {
		file string
		at   *time.Time
	}{{runFile, &s.run}, {reportFile, &s.report}, {topologyFile, &s.topology}} {
		if info, err := root.Lstat(path.Join(name, x.file)); err == nil {
			*x.at, s.bytes = info.ModTime(), s.bytes+info.Size()
		}
	}
	return s
}

func damaged(name string, err error) RunSummary {
	return RunSummary{Name: name, State: Damaged, Reason: err.Error(), Sites: []string{}, Arguments: []string{}, KeyResults: []Key{}}
}

// read reads a run: all of it, or what the list shows. What can be read of a
// damaged one is there.
func read(root *os.Root, name string, whole bool) (Run, []plot) {
	fail := func(s RunSummary, err error) RunSummary { s.State, s.Reason = Damaged, err.Error(); return s }
	out := Run{Earlier: []string{}, Notes: []string{}, Tables: []Table{}, Figures: []Figure{}}
	r, err := readRun(root, name)
	if err != nil {
		out.RunSummary = damaged(name, err)
		return out, nil
	}
	out.RunSummary, out.Machine, out.Earlier = r.summary(name), r.machine(), notNil(r.Earlier)
	if out.Topology, out.Sites, err = readTopology(root, name); err != nil {
		out.RunSummary = fail(out.RunSummary, err)
	}
	t, err := readReport(root, name, whole)
	if isMissing(err) {
		return out, nil
	}
	if err != nil {
		out.RunSummary = fail(out.RunSummary, err)
		return out, nil
	}
	out.Title, out.SetUp, out.Notes, out.Tables, out.CutShort = t.title, t.setUp, notNil(t.notes), notNil(t.tables), t.cut
	out.KeyResults, out.TookMS = keys(t.tables), new(int64(r.Seconds*1000))
	if out.State == Unfinished {
		out.State = Finished
	}
	if r.Void != "" && out.State == Finished {
		out.State, out.Reason = Void, r.Void
	}
	return out, t.plots
}

// Run reads a run. Errors: NotFound. A damaged one is told of in the answer.
func (f *Folder) Run(name string) (Run, error) {
	const op fault.Op = "runs.Run"
	root, err := f.enter(op, name)
	if err != nil {
		return Run{}, err
	}
	defer root.Close()
	out, plots := read(root, name, true)
	figures, cut, err := readFigures(root, name, plots)
	if err != nil {
		return Run{}, fault.Wrap(fault.IO, op, "experiments/"+name, err)
	}
	out.Figures, out.CutShort = figures, out.CutShort || cut
	return out, nil
}

// Figure returns a picture of a run, an SVG of at most 4 MiB. Errors: NotFound,
// TooLarge.
func (f *Folder) Figure(name, file string) ([]byte, error) {
	const op fault.Op = "runs.Figure"
	root, err := f.enter(op, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !isFigure(file) {
		return nil, fault.E(fault.NotFound, op, "experiments/"+name, "has no such figure: figures are .svg files")
	}
	data, err := readFile(root, path.Join(name, file), maxFigureBytes)
	if err != nil {
		return nil, &fault.Error{Kind: fault.NotFound, Op: op, Subject: "experiments/" + name + "/" + file, Public: "cannot be shown: " + told(file, err).Error(), Cause: err}
	}
	return data, nil
}

// enter opens the folder, and answers NotFound unless it has a directory of that
// name, which is no link.
func (f *Folder) enter(op fault.Op, name string) (*os.Root, error) {
	missing := fault.E(fault.NotFound, op, "experiments/"+name, "is no run in this node's folder of runs: the list has them")
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
		return nil, missing
	}
	root, err := f.open(op)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, missing
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		root.Close()
		return nil, missing
	}
	return root, nil
}
