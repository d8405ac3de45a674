//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// volume is a write-once directory as one client sees it.
type volume struct {
	*testing.T
	cl  *cartwheel.Client
	dir mount.Inode
}

// newVolumes makes a write-once directory, and returns it as its maker and as
// another client sees it. The directory is the maker's exclusively until the other
// one uses it.
func newVolumes(t *testing.T, c *servertest.Cluster) (made, seen *volume) {
	t.Helper()
	made = &volume{T: t, cl: clientOf(t, c, "a")}
	seen = &volume{T: t, cl: clientOf(t, c, "b")}
	once, err := made.cl.Lookup(t.Context(), nobody, mount.Root, ".WriteOnce")
	if err != nil {
		t.Fatal(err)
	}
	d, err := made.cl.Mkdir(t.Context(), nobody, once.Node, "volume", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	row, err := c.Row(t.Context(), ids.Object(d.Attr.Ino).Slice())
	if err != nil || row.Policy.Kind != geoconfig.WriteOnce {
		t.Errorf("its slice is of kind %v (%v), want write-once", row.Policy.Kind, err)
	}
	for _, v := range []*volume{made, seen} {
		e, err := v.cl.Lookup(t.Context(), nobody, mount.Root, "volume")
		if err != nil || e.Node == 0 {
			t.Fatalf("the volume is not there: %v", err)
		}
		v.dir = e.Node
		if v == made {
			put(t, v.cl, v.dir, "first", "the first", 0)
		}
	}
	return made, seen
}

// open opens a file of the volume, which may fail.
func (v *volume) open(name string, flags mount.OpenFlags) (mount.Inode, mount.Handle, error) {
	v.Helper()
	e, err := v.cl.Lookup(v.Context(), nobody, v.dir, name)
	if err != nil || e.Node == 0 {
		v.Fatalf("looking up %s: %+v, %v", name, e, err)
	}
	o, err := v.cl.Open(v.Context(), nobody, e.Node, flags)
	return e.Node, o.Handle, err
}

func (v *volume) write(node mount.Inode, h mount.Handle, offset int64, text string) {
	v.Helper()
	_, err := v.cl.Write(v.Context(), nobody, node, h, offset, []byte(text), 0)
	if err == nil {
		err = v.cl.Flush(v.Context(), nobody, node, h, 1)
	}
	if err != nil {
		v.Errorf("writing %q: %v", text, err)
	}
}

// refusesWrites checks that nothing changes what a file holds.
func (v *volume) refusesWrites(name, holds string) {
	v.Helper()
	ctx := v.Context()
	for _, flags := range []mount.OpenFlags{mount.OpenWrite, mount.OpenReadWrite, mount.OpenWrite | mount.OpenTruncate} {
		node, h, err := v.open(name, flags)
		if !fault.Is(err, fault.NotOwner) {
			v.Errorf("opening %s with %v: got %v, want NotOwner", name, flags, err)
		}
		if err == nil {
			v.cl.Release(node, h, 1, false)
		}
		if _, _, err := v.cl.Create(ctx, nobody, v.dir, name, 0o644, flags); !fault.Is(err, fault.NotOwner) {
			v.Errorf("creating %s with %v: got %v, want NotOwner", name, flags, err)
		}
	}
	node, h, err := v.open(name, mount.OpenRead)
	if err != nil {
		v.Fatal(err)
	}
	v.cl.Release(node, h, 1, false)
	for _, size := range []uint64{0, 100} {
		if _, err := v.cl.SetAttr(ctx, nobody, node, mount.SetAttr{Valid: mount.SetSize, Size: size}); !fault.Is(err, fault.NotOwner) {
			v.Errorf("setting the size of %s to %d: got %v, want NotOwner", name, size, err)
		}
	}
	if _, err := v.cl.SetAttr(ctx, nobody, node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o600}); err != nil {
		v.Errorf("setting the mode of %s: %v", name, err)
	}
	if got := get(v.T, v.cl, v.dir, name); got != holds {
		v.Errorf("%s holds %q, want %q", name, got, holds)
	}
}

// TestWriteOnce_LastCloseSealsAFile writes files until nobody has them open for
// writing, in a directory that is the client's alone and in one that is not.
func TestWriteOnce_LastCloseSealsAFile(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	made, seen := newVolumes(t, c)
	made.refusesWrites("first", "the first")
	seen.refusesWrites("first", "the first")
	for i, v := range []*volume{made, seen} {
		name := []string{"f", "g"}[i]
		e, o, err := v.cl.Create(t.Context(), nobody, v.dir, name, 0o644, mount.OpenWrite)
		if err != nil {
			t.Fatal(err)
		}
		v.write(e.Node, o.Handle, 0, "one")
		node, second, err := v.open(name, mount.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		v.cl.Release(e.Node, o.Handle, 1, false)
		v.write(node, second, 3, " two")
		v.cl.Release(node, second, 1, false)
		made.refusesWrites(name, "one two")
		seen.refusesWrites(name, "one two")
		if got := xattr(t, v.cl, e.Node, "user.cartwheel.cues"); got != ".WriteOnce" {
			t.Errorf("its cues are %q", got)
		}
	}
	for i, v := range []*volume{made, seen} {
		name := []string{"f", "g"}[i]
		if err := v.cl.Unlink(t.Context(), nobody, v.dir, name); err != nil {
			t.Errorf("removing %s: %v", name, err)
		}
		put(t, v.cl, v.dir, name, "another", 0)
		if got := get(t, seen.cl, seen.dir, name); got != "another" {
			t.Errorf("%s holds %q when made anew", name, got)
		}
	}
}

// TestWriteOnce_EmptyFilesAreNotWritten closes a file before it is written, and one
// whose close waits for no node.
func TestWriteOnce_EmptyFilesAreNotWritten(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	made, seen := newVolumes(t, c)
	for _, v := range []*volume{made, seen} {
		e, o, err := v.cl.Create(t.Context(), nobody, v.dir, "touched", 0o644, mount.OpenWrite)
		if err != nil {
			t.Fatal(err)
		}
		v.cl.Release(e.Node, o.Handle, 1, false)
		put(t, v.cl, v.dir, "touched", "later", 0)
		v.refusesWrites("touched", "later")
		if err := v.cl.Unlink(t.Context(), nobody, v.dir, "touched"); err != nil {
			t.Fatal(err)
		}
	}
	lazy, err := made.cl.Lookup(t.Context(), nobody, made.dir, ".SyncLevel=0")
	if err != nil {
		t.Fatal(err)
	}
	put(t, made.cl, lazy.Node, "lazy", "written", 0)
	made.refusesWrites("lazy", "written")
	seen.refusesWrites("lazy", "written")
}
