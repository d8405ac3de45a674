package earlier

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// What a Change says.
const (
	Added      = "added"
	Removed    = "removed"
	Content    = "content"
	Attributes = "attributes"
	Moved      = "moved"
)

// Change is one name that differs between two times.
type Change struct {
	What string `json:"what"`
	// Path is below the directory that is compared; of what moved, where it is later.
	Path string `json:"path"`
	// From is where something that moved was.
	From string `json:"from,omitempty"`
	Kind string `json:"kind"` // file, directory, link or special file
	Size int64  `json:"size_bytes"`
	// Also says that what moved was changed, too: Content or Attributes.
	Also string `json:"also,omitempty"`
}

// facts are what tells whether something is the same.
type facts struct {
	info fs.FileInfo
	Stamp
	target string
}

// Diff returns how a directory changed from one time to another, by paths. An object that
// has one name before and another one after counts as moved, where the system numbers
// files; what is below a moved directory is not listed, unless it changed. Errors: of the
// directory itself, and of what cannot be read below it.
func Diff(ctx context.Context, dir, from, to string) ([]Change, error) {
	const op fault.Op = "earlier.Diff"
	var trees [2]map[string]facts
	for i, when := range []string{from, to} {
		var err error
		if trees[i], err = read(ctx, At(dir, when)); err != nil {
			return nil, err
		}
	}
	before, after := trees[0], trees[1]
	out := []Change{}
	gone := map[uint64]string{} // numbers of what has no name of before any more
	for path, f := range before {
		if a, there := after[path]; (!there || a.Number != f.Number) && f.Number != 0 {
			gone[f.Number] = path
		}
	}
	moved := map[string]string{} // to where a path went
	for path, f := range after {
		if b, there := before[path]; there && b.Number == f.Number {
			continue
		}
		if was, ok := gone[f.Number]; ok && f.Number != 0 {
			moved[was] = path
		}
	}
	for path, f := range before {
		a, there := after[path]
		switch {
		case there && a.Number == f.Number:
			if what := changed(&f, &a); what != "" {
				out = append(out, Change{What: what, Path: path, Kind: kindOf(a.info.Mode()), Size: a.info.Size()})
			}
		case moved[path] == "":
			out = append(out, Change{What: Removed, Path: path, Kind: kindOf(f.info.Mode()), Size: f.info.Size()})
		default:
			to := moved[path]
			a := after[to]
			also := changed(&f, &a)
			if also == "" && moved[filepath.Dir(path)] == filepath.Dir(to) && filepath.Base(path) == filepath.Base(to) {
				continue // its directory moved
			}
			out = append(out, Change{What: Moved, Path: to, From: path, Kind: kindOf(a.info.Mode()), Size: a.info.Size(), Also: also})
		}
	}
	arrived := map[string]bool{}
	for _, path := range moved {
		arrived[path] = true
	}
	for path, f := range after {
		if b, there := before[path]; !arrived[path] && (!there || b.Number != f.Number) {
			out = append(out, Change{What: Added, Path: path, Kind: kindOf(f.info.Mode()), Size: f.info.Size()})
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		if d := strings.Compare(a.Path, b.Path); d != 0 {
			return d
		}
		return -strings.Compare(a.What, b.What) // removed before added
	})
	return out, fault.Wrap(fault.Canceled, op, dir, ctx.Err())
}

// changed tells whether an object's content or attributes differ. Of a directory the names
// are compared by themselves.
func changed(a, b *facts) string {
	m := a.info.Mode()
	switch {
	case m.Type() != b.info.Mode().Type() || a.target != b.target:
		return Content
	case m.IsRegular() && (a.info.Size() != b.info.Size() || !a.info.ModTime().Equal(b.info.ModTime())):
		return Content
	case m != b.info.Mode() || a.Owner != b.Owner:
		return Attributes
	case !m.IsDir() && a.Links == b.Links && a.Changed != b.Changed:
		return Attributes // an extended attribute, or an ACL
	}
	return ""
}

// read collects the facts of a tree, by paths below its root.
func read(ctx context.Context, root string) (map[string]facts, error) {
	const op fault.Op = "earlier.read"
	out := map[string]facts{}
	top, err := os.Lstat(root)
	if err != nil {
		return nil, fault.FromOS(op, root, err)
	}
	// The numbers of a tree are other ones at each time. They differ by the same bits
	// within one time, so that the root's takes them out.
	mask := StampOf(top).Number
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fault.FromOS(op, path, err)
		}
		if ctx.Err() != nil {
			return fault.Wrap(fault.Canceled, op, path, ctx.Err())
		}
		if path == root {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fault.FromOS(op, path, err)
		}
		f := facts{info: info, Stamp: StampOf(info)}
		if f.Number != 0 {
			f.Number ^= mask
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if f.target, err = os.Readlink(path); err != nil {
				return fault.FromOS(op, path, err)
			}
		}
		name, err := filepath.Rel(root, path)
		out[name] = f
		return err
	})
	return out, err
}
