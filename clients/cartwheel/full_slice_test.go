//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// deaf is a configuration store that tells a node nothing new while it is off.
type deaf struct {
	geoconfig.Store
	off *atomic.Bool
}

func (d deaf) heard(ctx context.Context) error {
	for d.off.Load() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "deaf", "", ctx.Err())
		}
	}
	return nil
}

// Read implements geoconfig.Store.
func (d deaf) Read(ctx context.Context, q geoconfig.Query) (geoconfig.Rows, error) {
	if err := d.heard(ctx); err != nil {
		return geoconfig.Rows{}, err
	}
	return d.Store.Read(ctx, q)
}

// Follow implements geoconfig.Store.
func (d deaf) Follow(ctx context.Context, since ids.Revision, limit int) (geoconfig.Rows, error) {
	rows, err := d.Store.Follow(ctx, since, limit)
	if late := d.heard(ctx); late != nil {
		return geoconfig.Rows{}, late
	}
	return rows, err
}

// makeFile makes an empty file that its node knows.
func makeFile(cl *cartwheel.Client, dir mount.Inode, i int) error {
	ctx := context.Background()
	e, o, err := cl.Create(ctx, nobody, dir, fmt.Sprint("f", i), 0o644, mount.OpenWrite|mount.OpenExclusive)
	if err == nil {
		err = cl.Flush(ctx, nobody, e.Node, o.Handle, 1)
		cl.Release(e.Node, o.Handle, 1, false)
	}
	return err
}

// TestPlace_FindsAnotherSliceWhenOneIsFull cuts the client's own node off from
// geo-config. The slice at the other node that it names fills up, and files are
// made all the same.
func TestPlace_FindsAnotherSliceWhenOneIsFull(t *testing.T) {
	var off atomic.Bool
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"},
		Configure: func(_ int, c *server.Config) { c.MaxSliceObjects = 5 },
		Depend: func(i int, d *server.Deps) {
			if i == 1 {
				store := d.Store
				d.Store = func(h *wire.Host) (geoconfig.Store, error) {
					s, err := store(h)
					return deaf{s, &off}, err
				}
			}
		}})
	t.Cleanup(func() { off.Store(false) })
	cl := opened(t, c, cartwheel.Options{Site: "b", OpTimeout: 20 * time.Second})
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.Background()
	there := below(t, cl, ".Site=a", ".RepLevel=1")
	create := func(i int) {
		t.Helper()
		if err := makeFile(cl, there, i); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	create(0)
	off.Store(true)
	slices := func() int {
		rows, err := c.Store.Read(ctx, geoconfig.Query{Slices: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows.Slices)
	}
	before := slices()
	for i := 1; slices() <= before; i++ {
		if i > 2000 {
			t.Fatal("no slice became full")
		}
		create(i)
		time.Sleep(5 * time.Millisecond)
	}
	create(5000)
}

// TestPlace_RecoversAFileWhoseSliceIsFull ends a client that could not publish a
// file. Others fill the slice before the next one comes.
func TestPlace_RecoversAFileWhoseSliceIsFull(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(i int, c *server.Config) {
		quick(i, c)
		c.MaxSliceObjects = 20
	}})
	o := cartwheel.Options{Site: "a", CacheDir: t.TempDir(), OpTimeout: 2 * time.Second}
	cl := opened(t, c, o)
	ctx := context.Background()
	if _, err := cl.Mkdir(ctx, nobody, below(t, cl, ".RepLevel=1"), "d", 0o777); err != nil {
		t.Fatal(err)
	}
	e, err := cl.Mkdir(ctx, nobody, below(t, cl, "d"), "e", 0o777)
	if err != nil {
		t.Fatal(err)
	}
	d, slice := e.Node, ids.Object(e.Attr.Ino).Slice()
	begin(t, cl, d, "told", "told").done()
	begin(t, cl, d, "f", "written to f")
	if n := cl.Pending(); n != 1 || slice == ids.RootSlice {
		t.Fatalf("%d files were made here, in slice %d; want one, in another than the root", n, slice)
	}
	cl.Host().SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	if err := cl.Close(); err == nil {
		t.Fatal("a client that is cut off closes as if all was committed")
	}
	other := clientOf(t, c, "a")
	theirs := below(t, other, "d", "e")
	for i := 0; ; i++ {
		row, err := c.Row(ctx, slice)
		if err != nil || i > 2000 {
			t.Fatalf("the slice does not become full: %v", err)
		}
		if row.Closed {
			break
		}
		put(t, other, theirs, fmt.Sprint("more", i), "x", mount.OpenExclusive)
		time.Sleep(5 * time.Millisecond)
	}
	again := opened(t, c, o)
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := get(t, again, below(t, again, "d", "e"), "f"); got != "written to f" {
		t.Errorf("it reads %q where it was recovered", got)
	}
}

// TestPlace_RetriesUntilItIsAnswered fills a slice and loses the questions where
// the next file goes, twice to each node. The file is made when one is answered.
func TestPlace_RetriesUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"},
		Configure: func(_ int, c *server.Config) { c.MaxSliceObjects = 5 }})
	cl := opened(t, c, cartwheel.Options{Site: "b", OpTimeout: 2 * time.Minute})
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := cl.Mkdir(t.Context(), nobody, below(t, cl, ".RepLevel=1"), "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	lost := cl.Count(method.Place, method.Place)
	healed := make(chan struct{})
	go func() {
		defer close(healed)
		for lost.Load() < 4 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cl.Lose()
	}()
	for i := 0; lost.Load() < 4; i++ {
		if i > 2000 {
			t.Fatal("no slice became full")
		}
		if err := makeFile(cl, d.Node, i); err != nil {
			t.Fatalf("file %d, after %d lost questions: %v", i, lost.Load(), err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	<-healed
}
