//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// lazyIn is a directory under the cue with which closes wait for no node.
func lazyIn(t *testing.T, cl *cartwheel.Client, d mount.Inode) mount.Inode {
	t.Helper()
	e, err := cl.Lookup(context.Background(), nobody, d, ".SyncLevel=0")
	if err != nil || e.Node == 0 {
		t.Fatalf("looking up the cue: %+v, %v", e, err)
	}
	return e.Node
}

// TestLazy_ACloseWaitsForNoNode closes new files with attributes of their own, with
// a write journal and without, and reads them from another client.
func TestLazy_ACloseWaitsForNoNode(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		lazyCloses(t, cartwheel.Options{Site: "a", CacheDir: dir})
	}
}

func lazyCloses(t *testing.T, o cartwheel.Options) {
	const files = 50
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	a, b := opened(t, c, o), clientOf(t, c, "a")
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	d := ownDir(t, a, "d")
	lazy := lazyIn(t, a, d)
	asked := counted(c.Nodes[0])
	for i := range files {
		m := begin(t, a, lazy, fmt.Sprint("f", i), strings.Repeat("x", i*100))
		if _, err := a.SetAttr(ctx, nobody, m.e.Node, mount.SetAttr{Valid: mount.SetMtime | mount.SetMode, Mtime: int64(i) * 1e9, Mode: 0o604}); err != nil {
			t.Error(err)
		}
		m.done()
		if r, err := a.GetAttr(ctx, nobody, m.e.Node, 0); err != nil || r.Attr.Mtime != int64(i)*1e9 || r.Attr.Mode&0o777 != 0o604 || r.Attr.Size != uint64(i*100) {
			t.Errorf("f%d shows %+v, %v", i, r.Attr, err)
		}
	}
	if a.Pending() == 0 {
		t.Error("nothing is left to be sent: the closes waited")
	}
	if n := asked.Load(); n > files/2 {
		t.Errorf("%d files cost %d requests", files, n)
	}
	there, err := b.Lookup(ctx, nobody, mount.Root, "d")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		e, err := b.Lookup(ctx, nobody, there.Node, fmt.Sprint("f", i))
		if err != nil || e.Attr.Mtime != int64(i)*1e9 || e.Attr.Mode&0o777 != 0o604 {
			t.Errorf("another client finds f%d as %+v, %v", i, e.Attr, err)
		}
		if got := get(t, b, there.Node, fmt.Sprint("f", i)); got != strings.Repeat("x", i*100) {
			t.Errorf("another client reads %d bytes of f%d", len(got), i)
		}
	}
}

// TestLazy_WaitsWhereOthersMaySee closes files that were there before, or are in a
// directory that another client has looked at.
func TestLazy_WaitsWhereOthersMaySee(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	a, b := clientOf(t, c, "a"), clientOf(t, c, "a")
	d := ownDir(t, a, "d")
	put(t, a, d, "old", "before", 0)
	lazy := lazyIn(t, a, d)
	ctx := context.Background()
	e, err := a.Lookup(ctx, nobody, lazy, "old")
	if err != nil {
		t.Fatal(err)
	}
	o, err := a.Open(ctx, nobody, e.Node, mount.OpenWrite)
	if err == nil {
		_, err = a.Write(ctx, nobody, e.Node, o.Handle, 0, []byte("AFTER!"), 0)
	}
	if err == nil {
		err = a.Flush(ctx, nobody, e.Node, o.Handle, 1)
	}
	if err != nil || a.Pending() != 0 {
		t.Errorf("closing what was there before: %v, and %d are left", err, a.Pending())
	}
	a.Release(e.Node, o.Handle, 1, false)
	if got := get(t, b, d, "old"); got != "AFTER!" {
		t.Errorf("another client reads %q", got)
	}
	if got := ls(t, b, d); len(got.names) != 3 {
		t.Errorf("another client lists %v", got.names)
	}
	begin(t, a, lazy, "new", "content").done()
	if n := a.Pending(); n != 0 {
		t.Errorf("%d are left of what was made in a shared directory", n)
	}
}

// TestLazy_SurvivesACrashInTheJournal ends a client right behind a close.
func TestLazy_SurvivesACrashInTheJournal(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: quick})
	o := cartwheel.Options{Site: "a", CacheDir: t.TempDir(), OpTimeout: 2 * time.Second}
	cl := opened(t, c, o)
	d := ownDir(t, cl, "d")
	lazy := lazyIn(t, cl, d)
	below, err := cl.Mkdir(context.Background(), nobody, d, "below", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, cl, lazy, "f", "content").done()
	begin(t, cl, lazyIn(t, cl, below.Node), "g", "in a new directory").done()
	cl.Abort()

	next := opened(t, c, o)
	for where, want := range map[string]string{"d/f": "content", "d/below/g": "in a new directory"} {
		e, err := at(next, where)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if got, err := read(next, e.Node, 100); err != nil || got != want {
			t.Errorf("%s reads %q, %v", where, got, err)
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// TestRmdir_OfADirectoryThatAnotherClientEmptied removes a directory in which
// another client has just removed the last name, which the node has not heard of.
func TestRmdir_OfADirectoryThatAnotherClientEmptied(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.Shared = 0 }})
	a, b := clientOf(t, c, "a"), clientOf(t, c, "a")
	ctx := context.Background()
	for i := range 20 {
		name := fmt.Sprint("d", i)
		ownDir(t, a, name)
		there, err := b.Lookup(ctx, nobody, mount.Root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []string{"x", "y"} {
			if _, err := b.Mkdir(ctx, nobody, there.Node, x, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range []string{"x", "y"} {
			if err := b.Rmdir(ctx, nobody, there.Node, x); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Rmdir(ctx, nobody, mount.Root, name); err != nil {
			t.Fatalf("%s: %v, %d operations are left at the other client", name, err, b.Pending())
		}
	}
}
