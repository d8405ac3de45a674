package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	gslices "slices"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// namesAtOnce bounds the names of a directory that are looked at at once.
const namesAtOnce = 1024

// object is what the walk wants to know of a file or directory. The number of an object
// in a mount names its slice.
type object struct {
	number, device uint64
	links          uint64
	stored         uint64 // bytes
}

// walk is a walk over a tree, with the rights of its caller and in few names at a time.
type walk struct {
	ctx context.Context
	// object tells of what the system says of a file.
	object func(fs.FileInfo) (object, bool)
	open   func(path string) (*os.File, error)

	slices map[ids.Slice]*treePart
	// linked has the files with several names that were counted.
	linked      map[uint64]bool
	device      uint64
	unread      int
	unreadFirst string
	otherMounts int
}

// walk walks the tree at a path. A directory that it cannot read is noted, and not counted
// as read; the error is of the path itself, or of a walk that was given up.
func (e *env) walk(root string) (*walk, error) {
	defer e.progress("walking %s", root)()
	w := &walk{ctx: e.ctx, object: objectOf, open: os.Open, slices: map[ids.Slice]*treePart{}, linked: map[uint64]bool{}}
	return w, w.run(root)
}

func (w *walk) run(root string) error {
	const op fault.Op = "command.run"
	info, err := os.Lstat(root)
	if err != nil {
		return fault.FromOS(op, root, err)
	}
	o, ok := w.object(info)
	if !ok {
		return fault.E(fault.NotSupported, op, root, "this system does not number files")
	}
	w.device = o.device
	w.add(info, &o)
	if !info.IsDir() {
		return nil
	}
	for dirs := []string{root}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		below, err := w.dir(dir)
		if w.ctx.Err() != nil {
			return fault.Wrap(fault.Canceled, op, root, w.ctx.Err())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // one that was removed meanwhile
			w.unread++
			w.unreadFirst = cmp.Or(w.unreadFirst, dir)
		}
		dirs = append(dirs[:len(dirs)-1], below...)
	}
	return nil
}

// dir counts what a directory has, and returns the directories in it.
func (w *walk) dir(path string) (below []string, err error) {
	d, err := w.open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for w.ctx.Err() == nil {
		names, err := d.ReadDir(namesAtOnce)
		for _, n := range names {
			info, err := n.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return below, err
			}
			o, _ := w.object(info)
			if o.device != w.device {
				w.otherMounts++
				continue
			}
			w.add(info, &o)
			if info.IsDir() {
				below = append(below, filepath.Join(path, n.Name()))
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return below, err
		}
	}
	return below, nil
}

// add counts an object, once whatever number of names it has.
func (w *walk) add(info fs.FileInfo, o *object) {
	if !info.IsDir() && o.links > 1 {
		if w.linked[o.number] {
			return
		}
		w.linked[o.number] = true
	}
	slice := ids.Object(o.number).Slice()
	p := w.slices[slice]
	if p == nil {
		p = &treePart{}
		w.slices[slice] = p
	}
	switch {
	case info.IsDir():
		p.Directories++
	case info.Mode().IsRegular():
		p.Files++
		p.Bytes += uint64(info.Size())
		p.Stored += o.stored
	default:
		p.Others++
	}
}

// view is what was found, before the nodes are asked.
func (w *walk) view(path string) spaceView {
	v := spaceView{Path: path, Unread: w.unread, UnreadFirst: w.unreadFirst, OtherMounts: w.otherMounts, Slices: []sliceSpace{}}
	for id, p := range w.slices {
		v.Tree.add(p)
		v.Slices = append(v.Slices, sliceSpace{Slice: id, Tree: *p, Replicas: []replicaSpace{}})
	}
	gslices.SortFunc(v.Slices, func(a, b sliceSpace) int { return cmp.Compare(a.Slice, b.Slice) })
	return v
}
