package acceptance

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// dayTree is what a directory of the day should hold: a content for each file,
// nil for each directory. Contents are replaced whole, so that a clone of the map
// keeps them as they were.
type dayTree map[string][]byte

// bytes is how much the files hold together.
func (d dayTree) bytes() int64 {
	var n int64
	for _, content := range d {
		n += int64(len(content))
	}
	return n
}

// differs says where a directory differs from the tree; nil: nowhere.
func (d dayTree) differs(root string) error {
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name := strings.TrimPrefix(path, root+"/")
		want, there := d[name]
		seen++
		switch {
		case !there:
			return fmt.Errorf("%s is there, and should not be", path)
		case e.IsDir() != (want == nil):
			return fmt.Errorf("%s is a directory: %v", path, e.IsDir())
		case e.IsDir():
			return nil
		}
		got, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s has %d bytes, which are not the %d that it should have", path, len(got), len(want))
		}
		return err
	})
	if err == nil && seen != len(d) {
		err = fmt.Errorf("%s holds %d names, and should hold %d", root, seen, len(d))
	}
	return err
}

// dayWorker changes a directory of its own on one mount, and knows what it holds.
type dayWorker struct {
	name    string // of the directory, below the root of every mount
	root    string
	tree    dayTree
	chance  *rand.Rand
	bytes   *rand.ChaCha8
	resting *sync.RWMutex // held for reading by each operation
	written *atomic.Int64 // bytes, by all workers
	done    int
	kinds   map[string]int
	longest time.Duration // of an operation
}

// dayPace bounds the pause before an operation: members that come back have to catch up
// with what goes on.
const dayPace = 50 * time.Millisecond

// dayNames bounds the names of a worker's directory.
const dayNames = 160

// work changes the directory until the day is over.
func (w *dayWorker) work(t *testing.T, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(w.chance.Int64N(int64(dayPace)))):
		}
		w.resting.RLock()
		began := time.Now()
		kind, err := w.step()
		w.longest = max(w.longest, time.Since(began))
		w.resting.RUnlock()
		if err != nil {
			t.Errorf("%s after %d operations: %s: %v", w.name, w.done, kind, err)
			w.tellAll(t)
			return
		}
		w.kinds[kind]++
		w.done++
	}
}

// tellAll logs what each mount shows once an operation has failed: the worker's tree has it
// done.
func (w *dayWorker) tellAll(t *testing.T) {
	<-time.After(3 * time.Second)
	mounts := filepath.Dir(filepath.Dir(w.root))
	for _, site := range daySites {
		t.Logf("%s shows at %s: %v", w.name, site, w.tree.differs(filepath.Join(mounts, site, w.name)))
	}
}

// step does one operation, on the mount and in what the worker knows.
func (w *dayWorker) step() (string, error) {
	files, dirs := w.names()
	if len(files) == 0 || len(w.tree) < dayNames && w.chance.IntN(3) == 0 {
		return w.make(dirs)
	}
	file := files[w.chance.IntN(len(files))]
	switch n := w.chance.IntN(12); {
	case n < 2 || len(w.tree) >= dayNames:
		return "remove", w.remove(file, dirs)
	case n < 4:
		return "append", w.change(file, int64(len(w.tree[file])))
	case n < 6:
		return "overwrite", w.change(file, w.chance.Int64N(int64(len(w.tree[file])+1)))
	case n < 8:
		return "rename", w.rename(file, w.fresh(dirs))
	case n < 9:
		return "replace", w.rename(file, files[w.chance.IntN(len(files))])
	case n < 10:
		return "truncate", w.truncate(file)
	}
	got, err := os.ReadFile(w.at(file))
	if err == nil && !bytes.Equal(got, w.tree[file]) {
		err = fmt.Errorf("%s has %d bytes, which are not the %d written", file, len(got), len(w.tree[file]))
	}
	return "read", err
}

func (w *dayWorker) at(name string) string { return filepath.Join(w.root, name) }

// names lists the files and the directories, always in the same order.
func (w *dayWorker) names() (files, dirs []string) {
	dirs = []string{""}
	for _, name := range slices.Sorted(maps.Keys(w.tree)) {
		if w.tree[name] == nil {
			dirs = append(dirs, name)
		} else {
			files = append(files, name)
		}
	}
	return files, dirs
}

// fresh is a name that was never used.
func (w *dayWorker) fresh(dirs []string) string {
	return filepath.Join(dirs[w.chance.IntN(len(dirs))], fmt.Sprintf("n%d-%d", w.done, w.chance.IntN(1000)))
}

// make makes a file, or now and then a directory.
func (w *dayWorker) make(dirs []string) (string, error) {
	name := w.fresh(dirs)
	if len(dirs) < 8 && w.chance.IntN(6) == 0 {
		w.tree[name] = nil
		return "mkdir", os.Mkdir(w.at(name), 0o755)
	}
	w.tree[name] = w.content()
	return "create", os.WriteFile(w.at(name), w.tree[name], 0o644)
}

// content draws one: most are small, and some are of many chunks.
func (w *dayWorker) content() []byte {
	limit := []int{3000, 3000, 3000, 40_000, 40_000, 400_000}[w.chance.IntN(6)]
	b := make([]byte, w.chance.IntN(limit))
	_, _ = w.bytes.Read(b) // it cannot fail
	w.written.Add(int64(len(b)))
	return b
}

// remove removes a file, or an empty directory if there is one.
func (w *dayWorker) remove(file string, dirs []string) error {
	for _, dir := range dirs[1:] {
		empty := true
		for name := range w.tree {
			empty = empty && !strings.HasPrefix(name, dir+"/")
		}
		if empty {
			file = dir
		}
	}
	delete(w.tree, file)
	return os.Remove(w.at(file))
}

// change writes at an offset of a file.
func (w *dayWorker) change(file string, off int64) error {
	piece := w.content()
	old := w.tree[file]
	now := make([]byte, max(len(old), int(off)+len(piece)))
	copy(now, old)
	copy(now[off:], piece)
	w.tree[file] = now
	f, err := os.OpenFile(w.at(file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(piece, off); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (w *dayWorker) truncate(file string) error {
	n := w.chance.IntN(len(w.tree[file]) + 1)
	w.tree[file] = slices.Clone(w.tree[file][:n])
	if w.tree[file] == nil {
		w.tree[file] = []byte{}
	}
	return os.Truncate(w.at(file), int64(n))
}

func (w *dayWorker) rename(from, to string) error {
	if from == to {
		return nil
	}
	w.tree[to] = w.tree[from]
	delete(w.tree, from)
	return os.Rename(w.at(from), w.at(to))
}
