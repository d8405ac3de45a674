//go:build linux

package cartwheel_test

import (
	"fmt"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// TestWholeFile_BringsADirectory looks one name up below .WholeFile from another
// site. All other names of the directory cost nothing then, those of objects in
// another slice among them.
func TestWholeFile_BringsADirectory(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	at := c.Active(ids.RootSlice).Index
	sites := []string{"a", "b", "c"}
	away := clientOf(t, c, sites[(at+1)%3])
	home := opened(t, c, cartwheel.Options{Site: ids.Site(sites[at])})
	put(t, home, mount.Root, "first", "1", 0)
	for i := range 20 {
		put(t, home, mount.Root, fmt.Sprint("f", i), "x", 0)
	}
	other, err := home.Lookup(t.Context(), nobody, mount.Root, ".Site="+sites[(at+2)%3])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := home.Mkdir(t.Context(), nobody, other.Node, fmt.Sprint("d", i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := home.Close(); err != nil { // it held them alone
		t.Fatal(err)
	}
	fs := away.FileSystem()
	whole, err := fs.Lookup(t.Context(), nobody, mount.Root, ".WholeFile")
	if err != nil {
		t.Fatal(err)
	}
	look := func(name string) {
		t.Helper()
		if e, err := fs.Lookup(t.Context(), nobody, whole.Node, name); err != nil || e.Node == 0 {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
	}
	// A new slice gives leases from the next keep-alive on.
	for e := (mount.Entry{}); e.AttrValid == 0; time.Sleep(10 * time.Millisecond) {
		if e, err = fs.Lookup(t.Context(), nobody, mount.Root, "d0"); err != nil {
			t.Fatal(err)
		}
	}
	look("first")
	// The attributes of the other slice's objects come behind the answer, and nothing
	// tells when.
	for away.Bare(mount.Root) > 0 {
		time.Sleep(time.Millisecond)
	}
	if _, wan := trips(away, func() {
		for i := range 20 {
			look(fmt.Sprint("f", i))
		}
		for i := range 3 {
			look(fmt.Sprint("d", i))
		}
	}); wan != 0 {
		t.Errorf("the other names cost %d round trips", wan)
	}
}

// TestWholeFile_BringsAFile opens a file below .WholeFile from another site and
// reads nothing. All of it comes.
func TestWholeFile_BringsAFile(t *testing.T) {
	home, away := far(t)
	put(t, home, mount.Root, "f", string(noise(3<<20)), 0)
	whole, err := away.Lookup(t.Context(), nobody, mount.Root, ".WholeFile")
	if err != nil {
		t.Fatal(err)
	}
	e, err := away.Lookup(t.Context(), nobody, whole.Node, "f")
	if err != nil {
		t.Fatal(err)
	}
	o, err := away.Open(t.Context(), nobody, e.Node, mount.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer away.Release(e.Node, o.Handle, 1, false)
	for away.Cached() < 3<<20 { // it comes in the background, and nothing tells when
		time.Sleep(time.Millisecond)
	}
	buf := make([]byte, 4096)
	for _, at := range []int64{2 << 20, 0, 1 << 20} {
		if n, err := away.Read(t.Context(), nobody, e.Node, o.Handle, at, buf); n != len(buf) || err != nil || string(buf) != string(noise(3 << 20)[at:at+4096]) {
			t.Errorf("the bytes at %d are wrong: %d, %v", at, n, err)
		}
	}
}
