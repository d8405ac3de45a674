//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/mounttest"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/server/servertest"
	"golang.org/x/sys/unix"
)

// dropped is a kernel that notes what it is told to drop.
type dropped struct {
	mu     sync.Mutex // guards below
	names  map[string]bool
	inodes map[mount.Inode]bool
}

func (d *dropped) InvalidateInode(node mount.Inode, _, _ int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inodes[node] = true
}

func (d *dropped) InvalidateEntry(_ mount.Inode, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name] = true
}

func (d *dropped) Delete(mount.Inode, mount.Inode, string) {}
func (d *dropped) Drained(done func())                     { done() }

// TestLease_EndsWhereTheMachineSlept lets the clock of leases jump, as a
// suspension does. The kernel, whose own clock stood still, is told to drop the
// names and files that it still caches, there or not.
func TestLease_EndsWhereTheMachineSlept(t *testing.T) {
	var asleep atomic.Int64
	clock := boottime.Default()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := opened(t, c, cartwheel.Options{Clock: func() time.Duration { return clock() + time.Duration(asleep.Load()) }})
	defer cl.Close()
	k := &dropped{names: map[string]bool{}, inodes: map[mount.Inode]bool{}}
	put(t, clientOf(t, c, "a"), mount.Root, "f", "x", 0)
	cl.Init(k)
	e := found(t, cl, "f")
	if none, err := cl.Lookup(t.Context(), nobody, mount.Root, "none"); err != nil || none.EntryValid <= 0 || e.EntryValid <= 0 {
		t.Fatalf("the kernel is let believe f for %v, that there is none for %v, %v: nothing is shown", e.EntryValid, none.EntryValid, err)
	}
	asleep.Store(int64(time.Hour))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the kernel to be told", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if !k.names["f"] || !k.names["none"] || !k.inodes[e.Node] {
			return fmt.Errorf("dropped are %v and %v", k.names, k.inodes)
		}
		return nil
	})
}

// scaled is a number of a test, or what a variable of the environment says.
func scaled(t *testing.T, name string, n int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestKnownFiles_KernelGivesInodesBack looks at far more files than the kernel
// is to know, and holds one open. In the end the client keeps no more than its
// limit, and every file still reads. KNOWN_FILES makes the tree larger.
func TestKnownFiles_KernelGivesInodesBack(t *testing.T) {
	mounttest.NeedFUSE(t)
	const inFolder = 500
	files := scaled(t, "KNOWN_FILES", 10_000)
	limit := files / 10
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	maker := clientOf(t, c, "a")
	for n := 0; n < files; n += inFolder {
		e, err := maker.Mkdir(t.Context(), nobody, mount.Root, fmt.Sprint("d", n), 0o755)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for part := range 10 {
			all.Go(func() {
				for i := part; i < inFolder; i += 10 {
					put(t, maker, e.Node, fmt.Sprint("f", i), "x", 0)
				}
			})
		}
		all.Wait()
	}
	cl := opened(t, c, cartwheel.Options{KnownFiles: limit, Names: names.Limits{Objects: limit, Entries: limit}})
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	point := mounted(t, cl)
	kept := filepath.Join(point, "d0", "f7")
	fd, err := openFile(kept, unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	folders, err := os.ReadDir(point)
	for _, d := range folders {
		var in []os.DirEntry
		if err == nil {
			in, err = os.ReadDir(filepath.Join(point, d.Name()))
		}
		for _, f := range in {
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(point, d.Name(), f.Name()), &st); err != nil {
				t.Fatal(err)
			}
			seen++
		}
	}
	if err != nil || seen != files {
		t.Fatalf("%d files were seen of %d, %v", seen, files, err)
	}
	most, _ := cl.Known()
	if most > limit+limit/2 {
		t.Errorf("the kernel knows %d files right after the walk, the limit is %d", most, limit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the kernel to give nodes up", func() error {
		if nodes, believed := cl.Known(); nodes > limit || believed > 0 {
			return fmt.Errorf("%d nodes and %d names are known, the limit is %d", nodes, believed, limit)
		}
		return nil
	})
	if err := shows(fd, []byte("x")); err != nil {
		t.Errorf("the file that stayed open: %v", err)
	}
	if err := unix.Close(fd); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != "x" {
		t.Errorf("a file that was given up reads %q, %v", got, err)
	}
}
