//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
	"golang.org/x/sync/errgroup"
)

// gathered is a sink with room for everything.
type gathered struct {
	names  int
	looked []mount.Entry
}

func (g *gathered) Add(mount.DirEntry) bool { g.names++; return true }

func (g *gathered) AddPlus(_ mount.DirEntry, e *mount.Entry) bool {
	if g.names++; e.Node != 0 {
		g.looked = append(g.looked, *e)
	}
	return true
}

// TestListing_AsksOnceAPage does what ls -l does, at another site: each name,
// its attributes, its ACL and its security label. The active is asked for
// nothing but the pages.
func TestListing_AsksOnceAPage(t *testing.T) {
	const files = 300
	ctx := context.Background()
	c := servertest.Start(t, servertest.Options{})
	maker, lister := clientOf(t, c, "a"), clientOf(t, c, "b")
	d, err := maker.Mkdir(ctx, nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		if _, err := maker.Mknod(ctx, nobody, d.Node, fmt.Sprint("f", i), mount.TypeRegular|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := maker.SetXattr(ctx, nobody, find(t, maker, d.Node, "f7"), "user.colour", []byte("blue"), 0); err != nil {
		t.Fatal(err)
	}
	dir := find(t, lister, mount.Root, "d")
	var lists, others atomic.Int64
	for _, n := range c.Nodes {
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			switch m {
			case method.List:
				lists.Add(1)
			case method.GetAttr, method.Resolve:
				others.Add(1)
			}
			return wire.Verdict{}
		})
	}
	o, err := lister.OpenDir(ctx, nobody, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lister.ReleaseDir(dir, o.Handle)
	var all gathered
	if err := lister.ReadDir(ctx, nobody, dir, o.Handle, 0, true, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.looked) != files {
		t.Fatalf("%d of %d names came with attributes", len(all.looked), files)
	}
	coloured := 0
	for _, e := range all.looked {
		if _, err := lister.GetXattr(ctx, nobody, e.Node, mount.AccessACL, nil); !fault.Is(err, fault.NoAttribute) {
			t.Fatalf("asking for an ACL: %v, want that there is none", err)
		}
		if _, err := lister.GetXattr(ctx, nobody, e.Node, "security.selinux", nil); !fault.Is(err, fault.NoAttribute) {
			t.Fatalf("asking for a label: %v, want that there is none", err)
		}
		if n, err := lister.GetXattr(ctx, nobody, e.Node, "user.colour", nil); err == nil && n == len("blue") {
			coloured++
		}
	}
	if coloured != 1 {
		t.Errorf("%d files have the attribute that one was given", coloured)
	}
	if l, x := lists.Load(), others.Load(); l != 1 || x > 1 {
		t.Errorf("the active was asked for %d pages and %d single objects, want 1, and 1 at most for the one with an attribute", l, x)
	}
}

func find(t *testing.T, cl interface {
	Lookup(context.Context, mount.Caller, mount.Inode, string) (mount.Entry, error)
}, dir mount.Inode, name string) mount.Inode {
	t.Helper()
	e, err := cl.Lookup(context.Background(), nobody, dir, name)
	if err != nil || e.Node == 0 {
		t.Fatalf("looking up %s: %+v, %v", name, e, err)
	}
	return e.Node
}

// within is a sink with room for some names.
type within struct {
	room    int
	names   []string
	cookies []uint64
}

func (w *within) Add(e mount.DirEntry) bool {
	if len(w.names) == w.room {
		return false
	}
	w.names, w.cookies = append(w.names, e.Name), append(w.cookies, e.Offset)
	return true
}

func (w *within) AddPlus(e mount.DirEntry, _ *mount.Entry) bool { return w.Add(e) }

// makeMany makes a directory d of so many empty files.
func makeMany(t *testing.T, cl *cartwheel.Client, files int) mount.Inode {
	t.Helper()
	const makers = 16
	d, err := cl.Mkdir(t.Context(), nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	var making errgroup.Group
	for m := range makers {
		making.Go(func() error {
			for i := m; i < files; i += makers {
				if _, err := cl.Mknod(t.Context(), nobody, d.Node, fmt.Sprintf("f%05d", i), mount.TypeRegular|0o644, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := making.Wait(); err != nil {
		t.Fatal(err)
	}
	return d.Node
}

// TestListing_KeepsFewNames reads a directory of several pages to its end, as
// the kernel does. Few names are kept. Then it goes back to places in it, as
// seekdir does, with some names gone. Each reads on with the name behind it.
func TestListing_KeepsFewNames(t *testing.T) {
	const files, most = 10_500, 3 * 2048
	ctx := t.Context()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	maker, lister := clientOf(t, c, "a"), clientOf(t, c, "a")
	made := makeMany(t, maker, files)
	dir := find(t, lister, mount.Root, "d")
	o, err := lister.OpenDir(ctx, nobody, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lister.ReleaseDir(dir, o.Handle)
	read := func(offset uint64) *within {
		w := &within{room: 100}
		if err := lister.ReadDir(ctx, nobody, dir, o.Handle, offset, false, w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	var all within
	kept := 0
	for offset := uint64(0); ; offset = all.cookies[len(all.cookies)-1] {
		w := read(offset)
		if len(w.names) == 0 {
			break
		}
		all.names, all.cookies = append(all.names, w.names...), append(all.cookies, w.cookies...)
		kept = max(kept, lister.ListingKept(o.Handle))
	}
	if len(all.names) != files+2 || kept > most {
		t.Fatalf("%d names were read, and %d kept, want %d and at most %d", len(all.names), kept, files+2, most)
	}
	for _, at := range []int{1, 2, 3, 2047, 2050, 5000, files} {
		if got, want := read(all.cookies[at]).names[0], all.names[at+1]; got != want {
			t.Errorf("back at place %d the listing goes on with %s, want %s", at, got, want)
		}
	}
	if err := maker.Unlink(ctx, nobody, made, all.names[4990]); err != nil {
		t.Fatal(err)
	}
	if got, want := read(all.cookies[5000]).names[0], all.names[5001]; got != want {
		t.Errorf("back at place 5000 with a name less before it the listing goes on with %s, want %s", got, want)
	}
}
