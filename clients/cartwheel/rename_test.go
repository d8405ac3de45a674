//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// overtaken is a client whose kernel was shown files x, y and z of the root, and
// another one, which changes what these names mean.
func overtaken(t *testing.T) (cl, other *cartwheel.Client, k *dropped) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other = clientOf(t, c, "a"), clientOf(t, c, "a")
	k = &dropped{names: map[string]bool{}, inodes: map[mount.Inode]bool{}}
	for _, name := range []string{"x", "y", "z"} {
		put(t, other, mount.Root, name, name, 0)
	}
	for i := range 3 {
		put(t, other, mount.Root, string(rune('1'+i)), "new", 0)
	}
	cl.Init(k)
	return cl, other, k
}

// forget forgets the names that were to be dropped so far.
func (d *dropped) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.names)
}

// wants checks that the kernel was told to drop names.
func (d *dropped) wants(t *testing.T, names ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		if !d.names[name] {
			t.Errorf("the kernel is told to drop %v, want %s too", d.names, name)
		}
	}
}

func rename(t *testing.T, cl *cartwheel.Client, from, to string, flags mount.RenameFlags) error {
	t.Helper()
	return cl.Rename(t.Context(), nobody, mount.Root, from, mount.Root, to, flags)
}

// TestRename_StaleUntilTheKernelLooksAgain lets the source or the target of a
// rename be replaced after the kernel looked them up. The rename answers Stale
// and changes nothing, until the kernel has looked them up again.
func TestRename_StaleUntilTheKernelLooksAgain(t *testing.T) {
	for what, in := range map[string]struct {
		replaced string
		flags    mount.RenameFlags
	}{
		"source": {"x", 0}, "target": {"y", 0}, "source of an exchange": {"x", mount.RenameExchange}, "target of an exchange": {"y", mount.RenameExchange},
	} {
		t.Run(what, func(t *testing.T) {
			cl, other, k := overtaken(t)
			before := map[string]mount.Entry{"x": found(t, cl, "x"), "y": found(t, cl, "y")}
			if err := rename(t, other, "1", in.replaced, 0); err != nil {
				t.Fatal(err)
			}
			k.forget()
			if err := rename(t, cl, "x", "y", in.flags); !fault.Is(err, fault.Stale) {
				t.Fatalf("got %v, want stale", err)
			}
			k.wants(t, "x", "y")
			now := map[string]mount.Entry{"x": found(t, cl, "x"), "y": found(t, cl, "y")}
			for name, e := range now {
				if same := e.Node == before[name].Node; same == (name == in.replaced) {
					t.Errorf("%s is node %x, it was %x before it or another name was replaced", name, e.Node, before[name].Node)
				}
			}
			if err := rename(t, cl, "x", "y", in.flags); err != nil {
				t.Fatal(err)
			}
			if e := found(t, other, "y"); e.Node != now["x"].Node {
				t.Errorf("y is node %x after the rename, want %x", e.Node, now["x"].Node)
			}
			// The kernel moved y itself, and does not look it up again.
			if err := rename(t, cl, "y", "z", 0); err != nil {
				t.Errorf("a rename of what was just renamed: %v", err)
			}
		})
	}
}

// TestRename_IsRefusedOnce replaces the source again after the kernel looked it
// up again. Whatever it is now is renamed, and the kernel told to look at it.
// The next rename is refused like the first.
func TestRename_IsRefusedOnce(t *testing.T) {
	cl, other, k := overtaken(t)
	for try, by := range []string{"1", "2"} {
		found(t, cl, "x")
		if err := rename(t, other, by, "x", 0); err != nil {
			t.Fatal(err)
		}
		k.forget()
		err := rename(t, cl, "x", "new", 0)
		if stale := fault.Is(err, fault.Stale); stale != (try == 0) || !stale && err != nil {
			t.Fatalf("try %d: %v", try, err)
		}
		k.wants(t, "x", "new")
	}
	if e, err := cl.Lookup(t.Context(), nobody, mount.Root, "x"); err != nil || e.Node != 0 {
		t.Errorf("the old name is node %x, %v", e.Node, err)
	}
	found(t, cl, "y")
	if err := rename(t, other, "3", "y", 0); err != nil {
		t.Fatal(err)
	}
	if err := rename(t, cl, "y", "new", 0); !fault.Is(err, fault.Stale) {
		t.Errorf("another rename: %v, want stale", err)
	}
}

// TestRename_NeverReplacesAnotherDirectory replaces the target twice. The kernel
// would take the directory that it was shown for removed.
func TestRename_NeverReplacesAnotherDirectory(t *testing.T) {
	cl, other, _ := overtaken(t)
	for _, name := range []string{"d", "e", "f", "g"} {
		if _, err := other.Mkdir(t.Context(), nobody, mount.Root, name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []string{"f", "g"} {
		found(t, cl, "d")
		found(t, cl, "e")
		if err := rename(t, other, by, "e", 0); err != nil {
			t.Fatal(err)
		}
		if err := rename(t, cl, "d", "e", 0); !fault.Is(err, fault.Stale) {
			t.Fatalf("got %v, want stale", err)
		}
	}
	found(t, cl, "d")
	found(t, cl, "e")
	if err := rename(t, cl, "d", "e", 0); err != nil {
		t.Error(err)
	}
}

// TestRename_WithoutAKernelMovesWhatIsThere renames names that were looked up
// before they were replaced, in a program that uses the library itself.
func TestRename_WithoutAKernelMovesWhatIsThere(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "x", "old", 0)
	found(t, cl, "x")
	replace(t, other, "x", "new")
	if err := rename(t, cl, "x", "y", 0); err != nil {
		t.Fatal(err)
	}
	if got := get(t, cl, mount.Root, "y"); got != "new" {
		t.Errorf("got %q", got)
	}
}

// TestRename_KernelHearsOfANameThatItMoved moves a file onto another one, after
// which the kernel caches the new name for as long as it might have cached the
// old one, and forgets what was replaced. Then another client replaces the name.
func TestRename_KernelHearsOfANameThatItMoved(t *testing.T) {
	for what, flags := range map[string]mount.RenameFlags{"replaced": 0, "exchanged": mount.RenameExchange} {
		t.Run(what, func(t *testing.T) {
			cl, other, k := overtaken(t)
			x, y := found(t, cl, "x"), found(t, cl, "y")
			if x.EntryValid <= 0 || y.EntryValid <= 0 {
				t.Fatalf("the kernel is let believe x for %v and y for %v: nothing is shown", x.EntryValid, y.EntryValid)
			}
			k.forget()
			if err := rename(t, cl, "x", "y", flags); err != nil {
				t.Fatal(err)
			}
			if flags == 0 {
				cl.Forget(y.Node, 1)
			}
			if err := rename(t, other, "1", "y", 0); err != nil {
				t.Fatal(err)
			}
			k.wants(t, "y")
		})
	}
}

// TestRename_KernelCachesNoNameWithoutALease moves a file out of a directory
// whose names the kernel may cache into one whose names it may not.
func TestRename_KernelCachesNoNameWithoutALease(t *testing.T) {
	cl, other, k := overtaken(t)
	d, err := other.Mkdir(t.Context(), nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	found(t, cl, "d")
	if none, err := cl.Lookup(t.Context(), nobody, d.Node, "none"); err != nil || none.Node != 0 {
		t.Fatalf("%+v, %v", none, err)
	}
	put(t, other, d.Node, "more", "", 0) // takes the lease of the lookup
	if x := found(t, cl, "x"); x.EntryValid <= 0 {
		t.Fatal("the kernel is not let believe x: nothing is shown")
	}
	k.forget()
	if err := cl.Rename(t.Context(), nobody, mount.Root, "x", d.Node, "moved", 0); err != nil {
		t.Fatal(err)
	}
	if err := other.Rename(t.Context(), nobody, mount.Root, "1", d.Node, "moved", 0); err != nil {
		t.Fatal(err)
	}
	k.wants(t, "moved")
}
