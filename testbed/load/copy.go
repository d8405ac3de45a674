package load

import (
	"context"
	"os"
	"path/filepath"
	"sync"
)

// copyTree copies with several workers. A file is copied as soon as its folder
// is there; the folders of one folder are made one after the other, because a
// kernel does so whoever asks, and a worker that waits for that does nothing.
func copyTree(ctx context.Context, o TreeOptions, _ *TreeResult) error {
	t, err := ReadTree(o.Source, 0)
	if err != nil {
		return err
	}
	c := newCopier(o, t)
	stop := context.AfterFunc(ctx, func() { c.end(ctx.Err()) })
	defer stop()
	var workers sync.WaitGroup
	for range max(1, o.Workers) {
		workers.Go(c.work)
	}
	workers.Wait()
	return c.err
}

// copier hands the parts of a tree to workers in an order that keeps them busy.
type copier struct {
	o TreeOptions

	mu      sync.Mutex // guards all below
	changed *sync.Cond
	folders map[string][]string // still to be made, by their parent, of parents that are there
	parents []string            // keys of folders, in the order in which they came to be there
	busy    map[string]bool     // a folder is being made in it
	files   []string            // ready to be copied
	within  map[string][2][]string
	left    int // folders and files that are not done
	err     error
}

// What within holds of a folder.
const (
	subfolders = iota
	plainFiles
)

func newCopier(o TreeOptions, t Tree) *copier {
	c := &copier{o: o, folders: map[string][]string{}, busy: map[string]bool{}, within: map[string][2][]string{}, left: 1 + len(t.Folders) + len(t.Files)}
	c.changed = sync.NewCond(&c.mu)
	add := func(path string, kind int) {
		in := c.within[filepath.Dir(path)]
		in[kind] = append(in[kind], path)
		c.within[filepath.Dir(path)] = in
	}
	for _, f := range t.Folders {
		add(f, subfolders)
	}
	for _, f := range spread(t.Files) {
		add(f, plainFiles)
	}
	c.folders[""], c.parents = []string{"."}, []string{""}
	return c
}

func (c *copier) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.left > 0 {
		c.err = err
	}
	c.changed.Broadcast()
}

// work does what there is until all is done.
func (c *copier) work() {
	for {
		path, parent, isFolder, ok := c.next()
		if !ok {
			return
		}
		var err error
		if isFolder {
			err = os.Mkdir(filepath.Join(c.o.Target, path), 0o755)
		} else {
			err = c.copyFile(path)
		}
		c.done(path, parent, isFolder, err)
	}
}

func (c *copier) copyFile(path string) error {
	data, err := os.ReadFile(filepath.Join(c.o.Source, path))
	if err != nil {
		return err
	}
	return write(filepath.Join(c.o.Target, path), 0o644, data)
}

// next waits for something to do: a folder first, as others wait for it, then
// a file, best of a folder where nobody makes one.
func (c *copier) next() (path, parent string, isFolder, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.left > 0 {
		for _, parent := range c.parents {
			if list := c.folders[parent]; len(list) > 0 && !c.busy[parent] {
				c.folders[parent], c.busy[parent] = list[1:], true
				return list[0], parent, true, true
			}
		}
		if n := len(c.files); n > 0 {
			at := 0
			for i, f := range c.files {
				if !c.busy[filepath.Dir(f)] {
					at = i
					break
				}
			}
			path := c.files[at]
			c.files = append(c.files[:at], c.files[at+1:]...)
			return path, "", false, true
		}
		c.changed.Wait()
	}
	return "", "", false, false
}

func (c *copier) done(path, parent string, isFolder bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		c.err = err
	}
	c.left--
	if isFolder {
		c.busy[parent] = false
		in := c.within[path]
		if len(in[subfolders]) > 0 {
			c.folders[path], c.parents = in[subfolders], append(c.parents, path)
		}
		c.files = append(c.files, in[plainFiles]...)
	}
	c.changed.Broadcast()
}
