//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/mount/memfs"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/store"
)

// fullDisk is a node whose disk a test fills, and a mount that finds out about it.
type fullDisk struct {
	t      *testing.T
	c      *servertest.Cluster
	filler string
	probe  *cartwheel.Client
}

func startFullDisk(t *testing.T) *fullDisk {
	dir := servertest.SmallDisk(t, 300<<20)
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Folders: true,
		Configure: func(_ int, c *server.Config) {
			c.Data, c.Shared = filepath.Join(dir, "node"), 0
			c.ReserveBytes = 32 << 20
		},
		Depend: func(_ int, d *server.Deps) {
			d.Disk = func(o *store.Options) {
				o.Journal.SegmentBytes, o.Pack.PackBytes, o.Meta.MemtableBytes = 4<<20, 16<<20, 1<<20
			}
		},
	})
	return &fullDisk{t, c, filepath.Join(dir, "filler"), clientOf(t, c, "a")}
}

// set fills the disk or gives the space back, and waits until the node has noticed.
func (d *fullDisk) set(full bool) {
	d.t.Helper()
	if full {
		servertest.FillDisk(d.t, d.filler)
	} else if err := os.Remove(d.filler); err != nil {
		d.t.Fatal(err)
	}
	servertest.Await(d.t.Context(), d.t, fmt.Sprint("a node with a full disk: ", full), func() error {
		err := writing{content: "x"}.run(d.probe, nobody, mount.Root, "probe")
		if full && fault.Is(err, fault.NoSpace) {
			return nil
		}
		if err == nil && full {
			err = fmt.Errorf("a write was taken")
		}
		return err
	})
}

// TestAlone_AFullDiskIsTold runs random programs while the disk fills and has room again,
// with a sync behind each step then. Who is told nothing by a step, a close or a sync
// has everything as the file system in memory does. In the end both mounts show the
// same, whatever was refused.
func TestAlone_AFullDiskIsTold(t *testing.T) {
	t.Parallel()
	d := startFullDisk(t)
	on, other := opened(t, d.c, cartwheel.Options{Site: "a"}), clientOf(t, d.c, "a")
	t.Cleanup(func() {
		if err := on.Close(); err != nil && !fault.Is(err, fault.NoSpace) { // the last program may have left what was refused
			t.Error(err)
		}
	})
	quiet, refused := 0, 0
	for seed := range programs(t, 40) / 2 {
		root := fmt.Sprint("seed", seed)
		p := &program{Rand: rand.New(rand.NewPCG(uint64(seed), 3)), root: root}
		twin := memfs.New(memfs.Options{}).View()
		for _, fs := range []mount.FileSystem{twin, on} {
			if _, err := fs.Mkdir(context.Background(), nobody, mount.Root, root, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var trace []string
		told, full, fills := false, false, p.IntN(60)
		for n := range 40 {
			if n == fills || full && p.IntN(8) == 0 {
				full = !full
				d.set(full)
				trace = append(trace, fmt.Sprint("the disk is full: ", full))
			}
			s := p.next(n)
			trace = append(trace, s.what)
			got, want := s.outcome(on), s.outcome(twin)
			told = told || got == fault.NoSpace.String()
			if full && !told { // what the client does itself may be refused later
				told = synced(t, on, root)
			}
			if got != want && !told {
				t.Fatalf("seed %d: step %d\n%s\ncame to\n%s\nwant\n%s", seed, n, lines(trace), got, want)
			}
		}
		if full {
			d.set(false)
		}
		told = synced(t, on, root) || told
		here, err := state(on, root)
		there, otherErr := state(other, root)
		if err != nil || otherErr != nil || here != there {
			t.Fatalf("seed %d\n%s\nleft, with %v,\n%s\nand at another mount, with %v,\n%s", seed, lines(trace), err, here, otherErr, there)
		}
		if told {
			refused++
			continue
		}
		quiet++
		if want, err := state(twin, root); err != nil || here != want {
			t.Fatalf("seed %d\n%s\nleft\n%s\nwant\n%s, %v", seed, lines(trace), here, want, err)
		}
	}
	if quiet == 0 || refused == 0 {
		t.Errorf("%d programs were told of the full disk and %d not: want some of each", refused, quiet)
	}
	t.Logf("%d programs were told of the full disk, %d not", refused, quiet)
}

// synced syncs all directories below a path, and reports whether one was told that the
// disk was full.
func synced(t *testing.T, cl *cartwheel.Client, where string) (told bool) {
	t.Helper()
	ctx := context.Background()
	e, err := at(cl, where)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	h, err := cl.OpenDir(ctx, nobody, e.Node)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	defer cl.ReleaseDir(e.Node, h.Handle)
	if err := cl.FsyncDir(ctx, nobody, e.Node, h.Handle, false); fault.Is(err, fault.NoSpace) {
		told = true
	} else if err != nil {
		t.Fatalf("a sync of %s: %v", where, err)
	}
	var list nameSink
	if err := cl.ReadDir(ctx, nobody, e.Node, h.Handle, 0, false, &list); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, name := range list {
		below, err := at(cl, where+"/"+name)
		if err != nil {
			t.Fatalf("%s/%s: %v", where, name, err)
		}
		if below.Attr.Mode&mount.TypeMask == mount.TypeDir {
			told = synced(t, cl, where+"/"+name) || told
		}
	}
	return told
}
