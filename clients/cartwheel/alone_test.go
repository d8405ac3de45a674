//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// programs is how many random programs run.
func programs(t *testing.T, few int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("CARTWHEEL_PROGRAMS_SEEDS"))
	if err != nil {
		return few
	}
	return n
}

// TestAlone_RandomProgramsMatchTheTwin runs random programs on three mounts, of
// which one does several steps in a row, and on a file system in memory. Each step
// must come to the same, wherever it runs, and the trees must be equal in the end.
func TestAlone_RandomProgramsMatchTheTwin(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.Shared = 0 }})
	mounts := []*cartwheel.Client{clientOf(t, c, "a"), clientOf(t, c, "a"), clientOf(t, c, "a")}
	here := uint64(0)
	for seed := range programs(t, 40) {
		root := fmt.Sprint("seed", seed)
		p := &program{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), root: root}
		twin := memfs.New(memfs.Options{}).View()
		if _, err := twin.Mkdir(context.Background(), nobody, mount.Root, root, 0o755); err != nil {
			t.Fatal(err)
		}
		on := mounts[seed%3]
		if _, err := on.Mkdir(context.Background(), nobody, mount.Root, root, 0o755); err != nil {
			t.Fatal(err)
		}
		var trace []string
		for n := range 60 {
			if p.IntN(12) == 0 {
				on = mounts[p.IntN(3)]
			}
			s := p.next(n)
			trace = append(trace, fmt.Sprintf("mount %d: %s", slices.Index(mounts, on), s.what))
			if got, want := s.outcome(on), s.outcome(twin); got != want {
				t.Fatalf("seed %d: step %d\n%s\ncame to\n%s\nwant\n%s", seed, n, lines(trace), got, want)
			}
		}
		want, err := state(twin, root)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range mounts {
			if got, err := state(m, root); err != nil || got != want {
				t.Fatalf("seed %d\n%s\nmount %d has, with %v,\n%s\nwant\n%s", seed, lines(trace), i, err, got, want)
			}
		}
	}
	for _, m := range mounts {
		here += m.Streamed()
	}
	if here == 0 {
		t.Error("no operation was done by a client itself")
	}
	t.Logf("%d operations were done by the clients themselves", here)
}

func lines(list []string) (out string) {
	for i, l := range list {
		out += fmt.Sprintf("%3d %s\n", i, l)
	}
	return out
}

// TestAlone_ACrashLeavesAPrefix ends a client as the death of its process would.
// What another one finds is what a file system in memory has after some number of
// the steps: at least of those before the last file that was closed.
func TestAlone_ACrashLeavesAPrefix(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) {
		conf.Shared = 0
		quick(0, conf)
	}})
	ok, here := 0, uint64(0)
	for seed := range programs(t, 40) / 4 {
		root := fmt.Sprint("seed", seed)
		p := &program{Rand: rand.New(rand.NewPCG(uint64(seed), 2)), root: root}
		twin := memfs.New(memfs.Options{}).View()
		on := opened(t, c, cartwheel.Options{Site: "a"})
		for _, fs := range []mount.FileSystem{twin, on} {
			if _, err := fs.Mkdir(context.Background(), nobody, mount.Root, root, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var trace, after []string
		for n := range 20 + p.IntN(30) {
			s := p.next(n)
			trace = append(trace, s.what)
			s.outcome(on)
			if s.outcome(twin) == "" {
				ok++
			}
			now, err := state(twin, root)
			if err != nil {
				t.Fatal(err)
			}
			after = append(after, now)
		}
		here += on.Streamed()
		on.Abort()
		next := clientOf(t, c, "a")
		got, err := state(next, root)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(after, got) {
			t.Fatalf("seed %d\n%s\nleft\n%s\nwhich it never was", seed, lines(trace), got)
		}
	}
	t.Logf("of %d changes, %d were done by the client itself", ok, here)
}

// TestAlone_NamesCostNoRequest does what a program does to names in a directory that
// its client made: none of it waits for a node, and all of it is there afterwards.
func TestAlone_NamesCostNoRequest(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	d := ownDir(t, cl, "d")
	asked := counted(c.Nodes[0])
	made := func(e mount.Entry, err error) mount.Entry {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return e
	}
	for i, do := range []func() error{
		func() error { made(cl.Mkdir(ctx, nobody, d, "x", 0o755)); return nil },
		func() error { return cl.Rename(ctx, nobody, d, "x", d, "y", 0) },
		func() error { made(cl.Symlink(ctx, nobody, d, "link", "y")); return nil },
		func() error { return cl.Unlink(ctx, nobody, d, "link") },
		func() error {
			y := made(cl.Lookup(ctx, nobody, d, "y"))
			_, err := cl.SetAttr(ctx, nobody, y.Node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o700})
			made(cl.Mkdir(ctx, nobody, y.Node, "below", 0o755))
			made(cl.Mkdir(ctx, nobody, y.Node, "gone", 0o755))
			return err
		},
		func() error { return cl.Rmdir(ctx, nobody, made(cl.Lookup(ctx, nobody, d, "y")).Node, "gone") },
	} {
		if err := do(); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if n := cl.Pending(); n == 0 {
			t.Errorf("step %d waited for the node", i)
		}
	}
	o, err := cl.OpenDir(ctx, nobody, d)
	if err == nil {
		err = cl.FsyncDir(ctx, nobody, d, o.Handle, false)
		cl.ReleaseDir(d, o.Handle)
	}
	if err != nil || cl.Pending() != 0 {
		t.Errorf("after fsync %d are pending, %v", cl.Pending(), err)
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("it cost %d requests, want 2 at most", n)
	}
	got, err := state(clientOf(t, c, "a"), "d")
	if want := "d 40755 3 0:0 {\ny 40700 3 0:0 {\nbelow 40755 2 0:0 {\n}\n}\n}\n"; err != nil || got != want {
		t.Errorf("another client finds, with %v,\n%s\nwant\n%s", err, got, want)
	}
}
