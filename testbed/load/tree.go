package load

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
)

// Tree is what lies below a folder: paths from it, folders before what they
// hold.
type Tree struct {
	Folders []string
	Files   []string
	Bytes   int64
}

// ReadTree lists folders and regular files below root, in the order of their
// paths, and at most limit files (0: all). Others are left out.
func ReadTree(root string, limit int) (Tree, error) {
	var t Tree
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		if limit > 0 && len(t.Files) >= limit {
			return filepath.SkipAll
		}
		switch {
		case d.IsDir():
			t.Folders = append(t.Folders, rel)
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			t.Files = append(t.Files, rel)
			t.Bytes += info.Size()
		}
		return nil
	})
	if err == nil && len(t.Files) == 0 {
		err = fault.E(fault.NotFound, "load.ReadTree", root, "holds no files")
	}
	return t, fault.FromOS("load.ReadTree", root, err)
}

// TreeWork is what can be done with a tree.
type TreeWork string

// The works on trees, in the order in which they make sense.
const (
	CopyTree   TreeWork = "copy"
	ListTree   TreeWork = "list"
	GrepTree   TreeWork = "grep"
	DeleteTree TreeWork = "delete"
)

// TreeWorks returns all of them.
func TreeWorks() []TreeWork { return []TreeWork{CopyTree, ListTree, GrepTree, DeleteTree} }

// TreeOptions say which tree and how.
type TreeOptions struct {
	Source string // a local folder; only copy reads it
	Target string // the folder to make, list, search or remove
	// Workers at once; 0: the tools that a person would use, cp, ls, grep and
	// rm, which do one thing after the other.
	Workers int
	Pattern string // what grep looks for
}

// TreeResult is what a work on a tree did, and how long it took.
type TreeResult struct {
	Work    TreeWork `json:"work"`
	Workers int      `json:"workers"` // 0: a tool
	Files   int      `json:"files"`
	Folders int      `json:"folders"`
	Bytes   int64    `json:"bytes"`
	Seconds float64  `json:"seconds"`
	// Matches is how many files grep found the pattern in.
	Matches int `json:"matches"`
}

// PerSecond is the work's speed in files a second.
func (r TreeResult) PerSecond() float64 { return float64(r.Files) / r.Seconds }

// DoTree does one work on a tree.
func DoTree(ctx context.Context, w TreeWork, o TreeOptions) (TreeResult, error) {
	const op fault.Op = "load.DoTree"
	r := TreeResult{Work: w, Workers: o.Workers}
	if o.Pattern == "" {
		o.Pattern = "func main"
	}
	do := map[TreeWork]func(context.Context, TreeOptions, *TreeResult) error{
		CopyTree: copyTree, ListTree: listTree, GrepTree: grepTree, DeleteTree: deleteTree,
	}[w]
	if do == nil {
		return r, fault.E(fault.Usage, op, string(w), "is no work on trees: copy, list, grep or delete")
	}
	if o.Workers == 0 {
		do = func(ctx context.Context, o TreeOptions, r *TreeResult) error { return byTool(ctx, w, o, r) }
	}
	var before Tree
	if w == CopyTree { // what others count while they work, copy knows
		var err error
		if before, err = ReadTree(o.Source, 0); err != nil {
			return r, err
		}
		r.Files, r.Folders, r.Bytes = len(before.Files), len(before.Folders)+1, before.Bytes
	}
	took, err := timed(func() error { return do(ctx, o, &r) })
	r.Seconds = took.Seconds()
	if err == nil {
		err = ctx.Err() // what was canceled in the middle of it may have left something out
	}
	return r, fault.FromOS(op, string(w)+" "+o.Target, err)
}

// byTool runs the tool that a person would use.
func byTool(ctx context.Context, w TreeWork, o TreeOptions, r *TreeResult) error {
	args := map[TreeWork][]string{
		CopyTree:   {"cp", "-r", o.Source, o.Target},
		ListTree:   {"ls", "-lR", o.Target},
		GrepTree:   {"grep", "-r", "-l", "-e", o.Pattern, o.Target},
		DeleteTree: {"rm", "-r", o.Target},
	}[w]
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var said, out bytes.Buffer
	cmd.Stderr, cmd.Stdout = &said, &out
	if err := cmd.Run(); err != nil && (w != GrepTree || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		return fault.Errorf(fault.Other, "load.byTool", args[0], "%v: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	switch w {
	case ListTree:
		for l := range bytes.Lines(out.Bytes()) {
			switch {
			case bytes.HasPrefix(l, []byte("-")):
				r.Files++
			case bytes.HasPrefix(l, []byte("d")):
				r.Folders++
			}
		}
		r.Folders++ // the one that was named
	case GrepTree:
		r.Matches = bytes.Count(out.Bytes(), []byte("\n"))
	}
	return nil
}

// spread orders files so that those next to each other are in different
// folders as far as can be: a kernel makes and removes the names of one folder
// one after the other, whoever asks.
func spread(files []string) []string {
	by := map[string][]string{}
	var folders []string
	for _, f := range files {
		dir := filepath.Dir(f)
		if by[dir] == nil {
			folders = append(folders, dir)
		}
		by[dir] = append(by[dir], f)
	}
	// The fullest folders first: what is left of them at the end goes one by one.
	sort.SliceStable(folders, func(i, j int) bool { return len(by[folders[i]]) > len(by[folders[j]]) })
	type ranked struct {
		file string
		part float64 // of its folder that comes before it
	}
	var all []ranked
	for _, dir := range folders {
		for i, f := range by[dir] {
			all = append(all, ranked{f, float64(i) / float64(len(by[dir]))})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].part < all[j].part })
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].file
	}
	return out
}

// levels puts together the folders of equal depth, the highest first.
func levels(folders []string) [][]string {
	by := map[int][]string{}
	for _, f := range folders {
		depth := bytes.Count([]byte(f), []byte{filepath.Separator})
		by[depth] = append(by[depth], f)
	}
	depths := make([]int, 0, len(by))
	for d := range by {
		depths = append(depths, d)
	}
	sort.Ints(depths)
	out := make([][]string, 0, len(depths))
	for _, d := range depths {
		out = append(out, by[d])
	}
	return out
}

// walk lists a tree as workers can: the folders of a level at once, with the
// attributes of all that they hold.
func walk(ctx context.Context, root string, workers int) (Tree, error) {
	var t Tree
	level := []string{"."}
	for len(level) > 0 {
		found := make([]Tree, len(level))
		err := each(ctx, workers, len(level), func(_ context.Context, i int) error {
			entries, err := os.ReadDir(filepath.Join(root, level[i]))
			if err != nil {
				return err
			}
			for _, e := range entries {
				info, err := e.Info() // an lstat, as ls -l does
				if err != nil {
					return err
				}
				path := filepath.Join(level[i], e.Name())
				if info.IsDir() {
					found[i].Folders = append(found[i].Folders, path)
					continue
				}
				found[i].Files = append(found[i].Files, path)
				found[i].Bytes += info.Size()
			}
			return nil
		})
		if err != nil {
			return t, err
		}
		level = nil
		for _, f := range found {
			level = append(level, f.Folders...)
			t.Folders, t.Files, t.Bytes = append(t.Folders, f.Folders...), append(t.Files, f.Files...), t.Bytes+f.Bytes
		}
	}
	return t, nil
}

func listTree(ctx context.Context, o TreeOptions, r *TreeResult) error {
	t, err := walk(ctx, o.Target, o.Workers)
	r.Files, r.Folders, r.Bytes = len(t.Files), len(t.Folders)+1, t.Bytes
	return err
}

// grepTree finds the files by listing, as grep -r does, and reads them all.
func grepTree(ctx context.Context, o TreeOptions, r *TreeResult) error {
	t, err := walk(ctx, o.Target, o.Workers)
	if err != nil {
		return err
	}
	var read, matches atomic.Int64
	err = each(ctx, o.Workers, len(t.Files), func(_ context.Context, i int) error {
		data, err := os.ReadFile(filepath.Join(o.Target, t.Files[i]))
		if bytes.Contains(data, []byte(o.Pattern)) {
			matches.Add(1)
		}
		read.Add(int64(len(data)))
		return err
	})
	r.Files, r.Folders, r.Bytes, r.Matches = len(t.Files), len(t.Folders)+1, read.Load(), int(matches.Load())
	return err
}

// deleteTree removes the files, then the folders from the lowest level up.
func deleteTree(ctx context.Context, o TreeOptions, r *TreeResult) error {
	t, err := walk(ctx, o.Target, o.Workers)
	if err != nil {
		return err
	}
	r.Files, r.Folders, r.Bytes = len(t.Files), len(t.Folders)+1, t.Bytes
	remove := func(paths []string) error {
		return each(ctx, o.Workers, len(paths), func(_ context.Context, i int) error { return os.Remove(filepath.Join(o.Target, paths[i])) })
	}
	if err := remove(spread(t.Files)); err != nil {
		return err
	}
	all := levels(t.Folders)
	for i := len(all) - 1; i >= 0; i-- {
		if err := remove(all[i]); err != nil {
			return err
		}
	}
	return os.Remove(o.Target)
}

// SameTree compares a copy with its source: names, sizes and bytes.
func SameTree(ctx context.Context, source, target string, workers int) error {
	const op fault.Op = "load.SameTree"
	want, err := ReadTree(source, 0)
	if err != nil {
		return err
	}
	got, err := ReadTree(target, 0)
	if err != nil {
		return err
	}
	if a, b := fmt.Sprint(want), fmt.Sprint(got); a != b {
		return fault.Errorf(fault.Corrupt, op, target, "holds %d files, %d folders and %d bytes, the source %d, %d and %d, or under other names",
			len(got.Files), len(got.Folders), got.Bytes, len(want.Files), len(want.Folders), want.Bytes)
	}
	return each(ctx, workers, len(want.Files), func(_ context.Context, i int) error {
		a, err := os.ReadFile(filepath.Join(source, want.Files[i]))
		if err != nil {
			return fault.FromOS(op, want.Files[i], err)
		}
		b, err := os.ReadFile(filepath.Join(target, want.Files[i]))
		if err != nil {
			return fault.FromOS(op, want.Files[i], err)
		}
		if !bytes.Equal(a, b) {
			return fault.E(fault.Corrupt, op, want.Files[i], "does not hold what its source holds")
		}
		return nil
	})
}

// Stage copies at most limit files of a tree to a new local folder, so that
// every work has the same ones.
func Stage(ctx context.Context, source, target string, limit int) (Tree, error) {
	const op fault.Op = "load.Stage"
	t, err := ReadTree(source, limit)
	if err != nil {
		return t, err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return t, fault.FromOS(op, target, err)
	}
	for _, f := range t.Folders {
		if err := os.Mkdir(filepath.Join(target, f), 0o755); err != nil {
			return t, fault.FromOS(op, target, err)
		}
	}
	return t, each(ctx, 1, len(t.Files), func(_ context.Context, i int) error {
		data, err := os.ReadFile(filepath.Join(source, t.Files[i]))
		if err == nil {
			err = write(filepath.Join(target, t.Files[i]), 0o644, data)
		}
		return fault.FromOS(op, t.Files[i], err)
	})
}
