//go:build linux

package cartwheel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

const deepPath = "a/b/c/d/e/f"

// deep makes the path at the site of its active, which is so far from the
// others that names come along, and returns options for clients there and at
// another site.
func deep(t *testing.T) (c *servertest.Cluster, near, away cartwheel.Options) {
	t.Helper()
	c, active, _ := farActive(t, 10*time.Millisecond)
	sites := []ids.Site{"a", "b", "c"}
	near = cartwheel.Options{Site: sites[active.Index]}
	home := opened(t, c, near)
	ctx := context.Background()
	at := mount.Root
	parts := strings.Split(deepPath, "/")
	for _, name := range parts[:len(parts)-1] {
		e, err := home.Mkdir(ctx, nobody, at, name, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		at = e.Node
	}
	put(t, home, at, parts[len(parts)-1], "content", 0)
	if err := home.Close(); err != nil { // they are not exclusively its own any more
		t.Fatal(err)
	}
	return c, near, cartwheel.Options{Site: sites[(active.Index+1)%3]}
}

// met opens a client that has a session with the root's active, and knows
// nothing yet. Nodes here are as near as they were when nothing delayed them,
// until more was measured, so that any distance is far.
func met(t *testing.T, c *servertest.Cluster, o cartwheel.Options) *cartwheel.Client {
	t.Helper()
	if o.AheadFrom == 0 {
		o.AheadFrom = 1
	}
	cl := opened(t, c, o)
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := cl.Lookup(context.Background(), nobody, mount.Root, "none"); err != nil {
		t.Fatal(err)
	}
	return cl
}

// openRead opens what a lookup found, reads it and closes it.
func openRead(t *testing.T, fs mount.FileSystem, e mount.Entry) {
	t.Helper()
	ctx := context.Background()
	o, err := fs.Open(ctx, nobody, e.Node, mount.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Release(e.Node, o.Handle, 1, false)
	buf := make([]byte, 100)
	if n, err := fs.Read(ctx, nobody, e.Node, o.Handle, 0, buf); err != nil || string(buf[:n]) != "content" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

// stepwise opens the path as a kernel does: name by name.
func stepwise(t *testing.T, fs mount.FileSystem) {
	t.Helper()
	at := mount.Entry{Node: mount.Root}
	for name := range strings.SplitSeq(deepPath, "/") {
		e, err := fs.Lookup(context.Background(), nobody, at.Node, name)
		if err != nil || e.Node == 0 {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		at = e
	}
	openRead(t, fs, at)
}

// TestWalk_ResolvesADeepPathInOneRoundTrip opens a path of six names of which
// nothing is known. By its path it takes one round trip. Name by name, as
// kernels ask, it takes two: the answer to the first brings the others along,
// and the open brings the content. Where names do not come along it takes one
// for each.
func TestWalk_ResolvesADeepPathInOneRoundTrip(t *testing.T) {
	t.Parallel()
	c, _, o := deep(t)
	cl := met(t, c, o)
	by, wan := trips(cl, func() { stepwise(t, cl.FileSystem()) })
	if wan > 2 {
		t.Errorf("name by name: %d round trips, want 2: %+v", wan, by)
	}
	cl.DropCaches(context.Background())
	if by, wan = trips(cl, func() { stepwise(t, cl.FileSystem()) }); wan > 2 {
		t.Errorf("name by name, once more: %d round trips, want 2: %+v", wan, by)
	}
	for _, from := range []time.Duration{-1, time.Hour} {
		cl = met(t, c, cartwheel.Options{Site: o.Site, Far: cartwheel.Far{AheadFrom: from}})
		if by, wan = trips(cl, func() { stepwise(t, cl.FileSystem()) }); wan != 6 {
			t.Errorf("name by name, from %v on: %d round trips, want 6: %+v", from, wan, by)
		}
	}
	cl = met(t, c, o)
	var e mount.Entry
	by, wan = trips(cl, func() {
		var err error
		if e, err = cl.FileSystem().(mount.PathWalker).Walk(context.Background(), nobody, mount.Root, "/"+deepPath); err != nil || e.Node == 0 {
			t.Fatalf("walk: %+v, %v", e, err)
		}
		openRead(t, cl.FileSystem(), e)
	})
	if wan != 1 {
		t.Errorf("by its path: %d round trips, want 1: %+v", wan, by)
	}
	by, wan = trips(cl, func() { stepwise(t, cl.FileSystem()) })
	if wan != 0 {
		t.Errorf("%d round trips after a walk, want none: %+v", wan, by)
	}
}

// TestWalk_NamesComeAlongAfterALapse has the session end with which a path is known, and
// another node act for it. Nobody changed the path, so its names come along once more.
func TestWalk_NamesComeAlongAfterALapse(t *testing.T) {
	t.Parallel()
	c, _, o := deep(t)
	cl := met(t, c, o)
	for what, void := range map[string]func(){
		"a lapse":    func() { cl.Lapse(c.Active(ids.RootSlice).ID()) },
		"a takeover": cl.TakenOver,
	} {
		stepwise(t, cl.FileSystem())
		void()
		if by, wan := trips(cl, func() { stepwise(t, cl.FileSystem()) }); wan != 2 {
			t.Errorf("after %s: %d round trips, want 2: %+v", what, wan, by)
		}
	}
}

func TestWalk_SaysWhereItEnds(t *testing.T) {
	t.Parallel()
	c, _, o := deep(t)
	cl := met(t, c, o)
	ctx := context.Background()
	for path, want := range map[string]fault.Kind{
		"a/b/none/d":                    fault.NotFound,
		"none/b":                        fault.NotFound,
		deepPath + "/g":                 fault.NotDirectory,
		".Site=none/a/b":                fault.Invalid,
		"a/.RepLevel=x/b":               fault.Invalid,
		strings.Repeat("x", 300) + "/b": fault.NameTooLong,
	} {
		if e, err := cl.Walk(ctx, nobody, mount.Root, path); !fault.Is(err, want) {
			t.Errorf("%s: %+v, %v; want %v", path, e, err, want)
		}
	}
	if e, err := cl.Walk(ctx, nobody, mount.Root, "a/b/none"); err != nil || e.Node != 0 {
		t.Errorf("a name that is not there: %+v, %v", e, err)
	}
	e, err := cl.Walk(ctx, nobody, mount.Root, "/a/.RepLevel=2/b/../b//./c/")
	plain, err2 := cl.Walk(ctx, nobody, mount.Root, "a/b/c")
	if err != nil || err2 != nil || e.Attr.Ino != plain.Attr.Ino || e.Node == plain.Node {
		t.Errorf("below a cue: %+v, %v; without: %+v, %v", e, err, plain, err2)
	}
}

// TestWalk_GivesUpWhatCameAlong changes what came along with an answer. The
// client that got it sees the change.
func TestWalk_GivesUpWhatCameAlong(t *testing.T) {
	t.Parallel()
	c, _, o := deep(t)
	cl, other := met(t, c, o), met(t, c, o)
	ctx := context.Background()
	fs := cl.FileSystem()
	if _, err := fs.Lookup(ctx, nobody, mount.Root, "a"); err != nil {
		t.Fatal(err)
	}
	e, err := other.Walk(ctx, nobody, mount.Root, "a/b/c")
	if err == nil {
		_, err = other.Mkdir(ctx, nobody, e.Node, "new", 0o700)
	}
	if err == nil {
		err = other.Rename(ctx, nobody, e.Node, "d", e.Node, "moved", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{"a/b/c/new": true, "a/b/c/moved/e/f": true, "a/b/c/d": false} {
		if e, err := cl.Walk(ctx, nobody, mount.Root, path); err != nil || (e.Node != 0) != there {
			t.Errorf("%s: %+v, %v; there should be: %v", path, e, err, there)
		}
	}
}

// TestWalk_LeavesExclusiveDirectoriesAlone brings names along around an
// exclusive directory in which another client makes files. That client goes on
// making them by itself.
func TestWalk_LeavesExclusiveDirectoriesAlone(t *testing.T) {
	t.Parallel()
	c, near, o := deep(t)
	maker := met(t, c, near)
	ctx := context.Background()
	b, err := maker.Walk(ctx, nobody, mount.Root, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	e, err := maker.Mkdir(ctx, nobody, b.Node, "mine", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	made := func(name string) uint64 {
		by, _ := trips(maker, func() {
			_, h, err := maker.FileSystem().Create(ctx, nobody, e.Node, name, 0o644, mount.OpenWrite)
			if err != nil {
				t.Fatal(err)
			}
			maker.Release(e.Node, h.Handle, 1, false)
		})
		return by["create"].Calls
	}
	if n := made("first"); n != 0 {
		t.Fatalf("a create took %d calls: the directory is not exclusive", n)
	}
	cl := met(t, c, o)
	if _, err := cl.FileSystem().Lookup(ctx, nobody, mount.Root, "a"); err != nil {
		t.Fatal(err)
	}
	if n := made("second"); n != 0 {
		t.Errorf("a create took %d calls after names came along to another client, want none", n)
	}
	if x, err := cl.Walk(ctx, nobody, mount.Root, "a/b/mine/second"); err != nil || x.Node == 0 {
		t.Errorf("what it made: %+v, %v", x, err)
	}
}
