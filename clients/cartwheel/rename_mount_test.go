//go:build linux

package cartwheel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// raced is a file system whose renames are overtaken: before each of the first
// ones is passed on, something else happens to the names. The kernel has looked
// them up by then.
type raced struct {
	mount.FileSystem
	mu        sync.Mutex // guards below
	meanwhile []func()
	renames   int
}

// overtake has the next renames overtaken.
func (r *raced) overtake(by ...func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meanwhile, r.renames = by, 0
}

func (r *raced) Rename(ctx context.Context, who mount.Caller, dir mount.Inode, name string, newDir mount.Inode, newName string, flags mount.RenameFlags) error {
	first := func() {}
	r.mu.Lock()
	if r.renames < len(r.meanwhile) {
		first = r.meanwhile[r.renames]
	}
	r.renames++
	r.mu.Unlock()
	first()
	return r.FileSystem.Rename(ctx, who, dir, name, newDir, newName, flags)
}

// race is a mount whose renames another mount overtakes.
type race struct {
	t           *testing.T
	fs          *raced
	here, there string
}

func newRace(t *testing.T) *race {
	mounttest.NeedFUSE(t)
	c := servertest.Start(t, servertest.Options{})
	r := &race{t: t, fs: &raced{FileSystem: clientOf(t, c, "a").FileSystem()}}
	r.here, r.there = mountedAs(t, r.fs), mounted(t, clientOf(t, c, "b"))
	return r
}

// must ends the test, and in a rename's goroutine at least says so.
func (r *race) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Error(err)
	}
}

func (r *race) write(point, name, content string) {
	r.t.Helper()
	r.must(os.WriteFile(filepath.Join(point, name), []byte(content), 0o644))
}

func (r *race) mkdir(point, name string) {
	r.t.Helper()
	r.must(os.Mkdir(filepath.Join(point, name), 0o755))
}

func (r *race) rename(point, from, to string, flags uint) {
	r.t.Helper()
	_, err := again(func() (int, error) {
		return 0, unix.Renameat2(unix.AT_FDCWD, filepath.Join(point, from), unix.AT_FDCWD, filepath.Join(point, to), flags)
	})
	r.must(err)
}

// share changes names of the root at both mounts, so that the kernel here is not
// let believe any of them, and will not be told to drop them.
func (r *race) share() {
	r.t.Helper()
	r.write(r.here, "here", "")
	r.write(r.there, "there", "")
}

// same checks that a name is one object at both mounts, in its attributes and in
// what it holds, which a file named "id" in a directory tells.
func (r *race) same(name, want string) {
	r.t.Helper()
	var seen [2]unix.Stat_t
	for i, point := range []string{r.here, r.there} {
		path := filepath.Join(point, name)
		r.must(unix.Stat(path, &seen[i]))
		if seen[i].Mode&unix.S_IFMT == unix.S_IFDIR {
			path = filepath.Join(path, "id")
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			r.t.Errorf("%s holds %q, %v at mount %d, want %q", name, got, err, i, want)
		}
	}
	if seen[0].Ino != seen[1].Ino {
		r.t.Errorf("%s is object %x here and %x there", name, seen[0].Ino, seen[1].Ino)
	}
}

// asked checks that the kernel asked for the rename again.
func (r *race) asked(least int) {
	r.t.Helper()
	r.fs.mu.Lock()
	defer r.fs.mu.Unlock()
	if r.fs.renames < least {
		r.t.Errorf("the kernel asked for %d renames, want at least %d", r.fs.renames, least)
	}
}

// TestRename_NameIsOneObject replaces the source of a rename at another mount
// when the kernel of this one has looked it up.
func TestRename_NameIsOneObject(t *testing.T) {
	t.Parallel()
	for what, in := range map[string]struct {
		make  func(r *race, point, name, id string)
		flags uint
	}{
		"a file":                       {make: (*race).write},
		"a directory":                  {make: (*race).folder},
		"a file with RENAME_NOREPLACE": {(*race).write, unix.RENAME_NOREPLACE},
		"a file with RENAME_EXCHANGE":  {(*race).write, unix.RENAME_EXCHANGE},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRace(t)
			r.mkdir(r.there, "from")
			in.make(r, r.there, "from/x", "old")
			in.make(r, r.there, "from/fresh", "new")
			if in.flags == unix.RENAME_EXCHANGE {
				in.make(r, r.there, "y", "other")
			}
			r.share()
			r.fs.overtake(func() {
				r.rename(r.there, "from/x", "from/gone", 0)
				r.rename(r.there, "from/fresh", "from/x", 0)
			})
			r.rename(r.here, "from/x", "y", in.flags)
			r.same("y", "new")
			r.same("from/gone", "old")
			if in.flags == unix.RENAME_EXCHANGE {
				r.same("from/x", "other")
			}
			r.asked(2)
		})
	}
}

// folder makes a directory that says what it is.
func (r *race) folder(point, name, id string) {
	r.t.Helper()
	r.mkdir(point, name)
	r.write(point, filepath.Join(name, "id"), id)
}

// TestRename_DirectoryNotReplacedStaysUsable moves the target of a rename away
// at another mount and puts another one in its place, when the kernel of this
// one has looked it up. The kernel may not take the first for removed.
func TestRename_DirectoryNotReplacedStaysUsable(t *testing.T) {
	for what, replaced := range map[string]bool{"replaced": true, "moved away": false} {
		t.Run(what, func(t *testing.T) {
			r := newRace(t)
			r.folder(r.there, "x", "source")
			r.mkdir(r.there, "y")
			r.mkdir(r.there, "fresh")
			held, err := os.Open(filepath.Join(r.here, "y")) // so that the kernel keeps it
			r.must(err)
			defer held.Close()
			r.fs.overtake(func() {
				r.rename(r.there, "y", "kept", 0)
				if replaced {
					r.rename(r.there, "fresh", "y", 0)
				}
			})
			r.rename(r.here, "x", "y", 0)
			r.same("y", "source")
			r.write(r.here, "kept/id", "kept")
			r.same("kept", "kept")
			r.asked(2)
		})
	}
}

// TestRename_IsOvertakenTwice replaces the source again when the kernel has
// looked it up again. The kernel would ask no third time: the rename is done,
// and the kernel looks up what it moved.
func TestRename_IsOvertakenTwice(t *testing.T) {
	r := newRace(t)
	r.mkdir(r.there, "from")
	for _, name := range []string{"x", "one", "two"} {
		r.write(r.there, "from/"+name, name)
	}
	r.share()
	r.fs.overtake(func() { r.rename(r.there, "from/one", "from/x", 0) }, func() { r.rename(r.there, "from/two", "from/x", 0) })
	r.rename(r.here, "from/x", "y", 0)
	r.asked(2)
	if _, err := again(func() (int, error) { return 0, unix.Access(filepath.Join(r.here, "from/x"), unix.F_OK) }); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the old name: %v, want that it is not there", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the kernel to look the new name up", func() error {
		got, err := os.ReadFile(filepath.Join(r.here, "y"))
		if err == nil && string(got) != "two" {
			err = fmt.Errorf("it holds %q", got)
		}
		return err
	})
	r.same("y", "two")
}
