//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// distant runs one node that is far from everybody, with files in directories,
// and counts what it is asked, by method.
func distant(t *testing.T, files map[string]string) (c *servertest.Cluster, asked map[wire.Method]*atomic.Int64) {
	t.Helper()
	c = servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, c *server.Config) { c.Socket = "none" }})
	maker := opened(t, c, cartwheel.Options{Site: "a"})
	ctx := context.Background()
	dirs := map[string]mount.Inode{}
	for path, content := range files {
		dir, name, _ := strings.Cut(path, "/")
		if dirs[dir] == 0 {
			e, err := maker.Mkdir(ctx, nobody, mount.Root, dir, 0o755)
			if err != nil {
				t.Fatal(err)
			}
			dirs[dir] = e.Node
		}
		put(t, maker, dirs[dir], name, content, 0)
	}
	if err := maker.Close(); err != nil {
		t.Fatal(err)
	}
	asked = map[wire.Method]*atomic.Int64{method.Files: {}, method.GetAttr: {}, method.Range: {}, method.Get: {}}
	c.Nodes[0].Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		if n := asked[m]; n != nil {
			n.Add(1)
		}
		if m == wire.MethodDial {
			return wire.Verdict{}
		}
		return wire.Verdict{Delay: 2 * time.Millisecond}
	})
	return c, asked
}

// grep reads the files of a listed directory through a mount's file system and
// compares them.
func grep(t *testing.T, fs mount.FileSystem, dir string, files map[string]string) {
	t.Helper()
	ctx := context.Background()
	d, err := fs.Lookup(ctx, nobody, mount.Root, dir)
	if err != nil || d.Node == 0 {
		t.Fatalf("%s: %+v, %v", dir, d, err)
	}
	for _, name := range slices.Sorted(maps.Keys(ls(t, fs, d.Node).names)) {
		want, ours := files[dir+"/"+name]
		if !ours {
			continue
		}
		e, err := fs.Lookup(ctx, nobody, d.Node, name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := fs.Open(ctx, nobody, e.Node, mount.OpenRead)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 256<<10)
		if n, err := fs.Read(ctx, nobody, e.Node, o.Handle, 0, buf); err != nil || string(buf[:n]) != want {
			t.Errorf("%s has %d bytes or others, %v; want %d", name, n, err, len(want))
		}
		fs.Release(e.Node, o.Handle, 1, false)
	}
}

// tree is files of several sizes in two directories, as grep -r reads them.
func tree(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		text := fmt.Sprintf("file %d of several lines ", i)
		files[fmt.Sprintf("d/f%02d", i)] = strings.Repeat(text, 1+i%3*300) // in its record, and 8 and 15 KiB
		files[fmt.Sprintf("e/g%02d", i)] = strings.Repeat(text, 1+i%2*400)
	}
	return files
}

// TestPrefetch_ListedFilesComeInBatches reads the small files of two listed
// directories one after the other: most of them cost no round trip of their own.
func TestPrefetch_ListedFilesComeInBatches(t *testing.T) {
	const n = 40
	files := tree(n)
	c, asked := distant(t, files)
	cl := met(t, c, cartwheel.Options{})
	by, first := trips(cl, func() { grep(t, cl.FileSystem(), "d", files) })
	if first > 16 { // lookup, listing, two files on their own, batches
		t.Errorf("%d round trips for %d files, want a few: %+v", first, n, by)
	}
	by, second := trips(cl, func() { grep(t, cl.FileSystem(), "e", files) })
	if second > 10 {
		t.Errorf("%d round trips for %d more, want fewer: %+v", second, n, by)
	}
	if files, single := asked[method.Files].Load(), asked[method.GetAttr].Load()+asked[method.Range].Load()+asked[method.Get].Load(); files == 0 || single > 12 {
		t.Errorf("the node was asked for %d batches, and %d times for single files", files, single)
	}
	t.Logf("%d and %d round trips for %d files each", first, second, n)

	one := met(t, c, cartwheel.Options{Far: cartwheel.Far{AheadFrom: -1}})
	if by, wan := trips(one, func() { grep(t, one.FileSystem(), "d", files) }); wan < n {
		t.Errorf("%d round trips for %d files one by one, want no fewer: %+v", wan, n, by)
	}
}

// TestPrefetch_FilesThatComeAlongStayCurrent changes, removes and makes files
// that were prefetched by another client. It sees them as they are.
func TestPrefetch_FilesThatComeAlongStayCurrent(t *testing.T) {
	files := tree(20)
	c, _ := distant(t, files)
	cl, other := met(t, c, cartwheel.Options{}), met(t, c, cartwheel.Options{})
	grep(t, cl.FileSystem(), "d", files)
	ctx := context.Background()
	d, err := other.Walk(ctx, nobody, mount.Root, "d")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		name := fmt.Sprintf("f%02d", i)
		switch i % 4 {
		case 0:
			files["d/"+name] = strings.Repeat("changed ", 1+i*200)
			put(t, other, d.Node, name, files["d/"+name], mount.OpenTruncate)
		case 1:
			delete(files, "d/"+name)
			err = other.Unlink(ctx, nobody, d.Node, name)
		case 2:
			files["d/new"+name] = files["d/"+name]
			delete(files, "d/"+name)
			err = other.Rename(ctx, nobody, d.Node, name, d.Node, "new"+name, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for path := range tree(20) {
		if dir, name, _ := strings.Cut(path, "/"); dir == "d" {
			_, there := files[path]
			if e, err := cl.Lookup(ctx, nobody, find(t, cl, mount.Root, "d"), name); err != nil || (e.Node != 0) != there {
				t.Errorf("%s: %+v, %v; want it there: %v", name, e, err, there)
			}
		}
	}
	grep(t, cl.FileSystem(), "d", files)
}

// TestPrefetch_SingleFilesBringNothing opens one file in each of many
// directories, as a mail server does, and several files of a directory that
// nobody listed.
func TestPrefetch_SingleFilesBringNothing(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		for j := range 5 {
			files[fmt.Sprintf("d%02d/f%d", i, j)] = "content"
		}
	}
	c, asked := distant(t, files)
	cl := met(t, c, cartwheel.Options{})
	for i := range 20 {
		d := find(t, cl, mount.Root, fmt.Sprintf("d%02d", i))
		ls(t, cl, d)
		if got := get(t, cl, d, "f3"); got != "content" {
			t.Errorf("d%02d/f3 has %q", i, got)
		}
	}
	if n := asked[method.Files].Load(); n != 0 {
		t.Errorf("%d batches were brought for single files, want none", n)
	}
}
