//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// trips runs fn and returns what it cost, by kind, and all WAN round trips.
func trips(cl *cartwheel.Client, fn func()) (by map[string]trace.Count, wan uint64) {
	before := map[string]trace.Count{}
	for _, c := range cl.Counts() {
		before[c.Kind] = c
	}
	fn()
	by = map[string]trace.Count{}
	for _, c := range cl.Counts() {
		b := before[c.Kind]
		c.Count, c.WAN, c.Calls, c.Local = c.Count-b.Count, c.WAN-b.WAN, c.Calls-b.Calls, c.Local-b.Local
		if c.Count > 0 {
			by[c.Kind] = c
			wan += c.WAN
		}
	}
	return by, wan
}

// far opens a client at the site of the root's active and one at another site.
func far(t *testing.T) (home, away *cartwheel.Client) {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	at := c.Active(ids.RootSlice).Index
	sites := []string{"a", "b", "c"}
	return clientOf(t, c, sites[at]), clientOf(t, c, sites[(at+1)%3])
}

// names collects a listing, and which entries came with attributes.
type listed struct {
	names  map[string]bool
	looked int
	last   uint64
	n      int
}

func (l *listed) Add(e mount.DirEntry) bool { return l.AddPlus(e, &mount.Entry{}) }

func (l *listed) AddPlus(e mount.DirEntry, entry *mount.Entry) bool {
	if l.n++; l.n > 100 {
		return false // a kernel's buffer
	}
	l.names[e.Name] = true
	l.last = e.Offset
	if entry.Node != 0 {
		l.looked++
	}
	return true
}

// ls lists a directory as ls -l does.
func ls(t *testing.T, fs mount.FileSystem, dir mount.Inode) *listed {
	t.Helper()
	ctx := context.Background()
	o, err := fs.OpenDir(ctx, nobody, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.ReleaseDir(dir, o.Handle)
	out := &listed{names: map[string]bool{}}
	for {
		out.n = 0
		if err := fs.ReadDir(ctx, nobody, dir, o.Handle, out.last, true, out); err != nil {
			t.Fatal(err)
		}
		if out.n == 0 {
			return out
		}
	}
}

// TestTrips_ListingCostsOne lists a directory of several pages and some
// directories from another site. One round trip brings all names and all
// attributes, and what is asked of them then costs none.
func TestTrips_ListingCostsOne(t *testing.T) {
	const files, dirs = 4500, 5
	home, away := far(t)
	ctx := context.Background()
	e, err := home.Mkdir(ctx, nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := w; i < files; i += 16 {
				if _, err := home.Mknod(ctx, nobody, e.Node, fmt.Sprintf("f%05d", i), mount.TypeRegular|0o644, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for i := range dirs {
		if _, err := home.Mkdir(ctx, nobody, e.Node, fmt.Sprintf("g%d", i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// As long as the client that made the directories has them exclusively, no
	// other may keep their attributes.
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	fs := away.FileSystem()
	d, err := fs.Lookup(ctx, nobody, mount.Root, "d")
	if err != nil {
		t.Fatal(err)
	}
	var got *listed
	by, wan := trips(away, func() { got = ls(t, fs, d.Node) })
	if len(got.names) != files+dirs+2 || got.looked != files+dirs {
		t.Errorf("%d names and %d with attributes, want %d and %d", len(got.names), got.looked, files+dirs+2, files+dirs)
	}
	if wan != 1 {
		t.Errorf("%d round trips, want 1: %+v", wan, by)
	}
	by, wan = trips(away, func() {
		for i := range dirs {
			g, err := fs.Lookup(ctx, nobody, d.Node, fmt.Sprintf("g%d", i))
			if err == nil {
				_, err = fs.GetAttr(ctx, nobody, g.Node, 0)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if x, err := fs.Lookup(ctx, nobody, d.Node, "none"); err != nil || x.Node != 0 {
			t.Errorf("a name that is not there: %+v, %v", x, err)
		}
		if again := ls(t, fs, d.Node); len(again.names) != len(got.names) {
			t.Errorf("%d names the second time", len(again.names))
		}
	})
	if wan != 0 {
		t.Errorf("%d round trips for what is known, want none: %+v", wan, by)
	}
}

// TestTrips_KnownFilesCostNone opens, reads and closes a file a second time, and
// asks all that kernels ask of it.
func TestTrips_KnownFilesCostNone(t *testing.T) {
	home, away := far(t)
	ctx := context.Background()
	fs := away.FileSystem()
	read := func(file string) {
		e, err := fs.Lookup(ctx, nobody, mount.Root, file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := fs.Open(ctx, nobody, e.Node, mount.OpenRead)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		if n, err := fs.Read(ctx, nobody, e.Node, o.Handle, 0, buf); err != nil || string(buf[:n]) != "content" {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		if err := fs.Flush(ctx, nobody, e.Node, o.Handle, 1); err != nil {
			t.Error(err)
		}
		fs.Release(e.Node, o.Handle, 1, false)
		if _, err := fs.GetAttr(ctx, nobody, e.Node, 0); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"security.capability", mount.AccessACL} {
			if _, err := fs.GetXattr(ctx, nobody, e.Node, name, nil); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		if err := fs.Access(ctx, nobody, e.Node, mount.AccessRead); err != nil {
			t.Error(err)
		}
	}
	// On a busy machine a session may lapse in between, and what was known is
	// asked again: one file of several must show the cost.
	const files = 5
	for i := range files {
		file := fmt.Sprint("f", i)
		put(t, home, mount.Root, file, "content", 0)
		unseen, first := trips(away, func() { read(file) })
		known, second := trips(away, func() { read(file) })
		if first <= 1 && second == 0 {
			return
		}
		t.Logf("%d round trips for a small file that was never seen, want 1: %+v", first, unseen)
		t.Logf("%d round trips for one that is known, want none: %+v", second, known)
	}
	t.Errorf("none of %d files cost what it should", files)
}

// TestTrips_ChangesCostTheirCommit makes, writes, renames and removes in a
// directory of another site's slice. Each costs a round trip to its active and
// one to the standbys, and looking costs none.
func TestTrips_ChangesCostTheirCommit(t *testing.T) {
	_, away := far(t)
	ctx := context.Background()
	fs := away.FileSystem()
	keep, err := fs.Lookup(ctx, nobody, mount.Root, ".KeepTogether")
	if err != nil {
		t.Fatal(err)
	}
	var d, e mount.Entry
	var o mount.Opened
	steps := []struct {
		what string
		want uint64
		do   func() error
	}{
		{"mkdir, which registers the client, too", 2, func() (err error) { d, err = fs.Mkdir(ctx, nobody, keep.Node, "d", 0o755); return err }},
		{"lookup of a new name", 0, func() error { _, err := fs.Lookup(ctx, nobody, d.Node, "tmp"); return err }},
		{"create", 2, func() (err error) {
			e, o, err = fs.Create(ctx, nobody, d.Node, "tmp", 0o644, mount.OpenWrite)
			return err
		}},
		{"write", 0, func() error { _, err := fs.Write(ctx, nobody, e.Node, o.Handle, 0, []byte("mail"), 0); return err }},
		{"fsync", 2, func() error { return fs.Fsync(ctx, nobody, e.Node, o.Handle, false) }},
		{"flush without a change", 0, func() error { return fs.Flush(ctx, nobody, e.Node, o.Handle, 1) }},
		{"getattr", 0, func() error { _, err := fs.GetAttr(ctx, nobody, e.Node, 0); return err }},
		{"rename", 2, func() error { return fs.Rename(ctx, nobody, d.Node, "tmp", d.Node, "msg", 0) }},
		{"unlink", 2, func() error { return fs.Unlink(ctx, nobody, d.Node, "msg") }},
		{"mkdir", 2, func() error { _, err := fs.Mkdir(ctx, nobody, d.Node, "sub", 0o755); return err }},
		{"getattr of the directory", 0, func() error { _, err := fs.GetAttr(ctx, nobody, d.Node, 0); return err }},
		{"rmdir", 2, func() error { return fs.Rmdir(ctx, nobody, d.Node, "sub") }},
	}
	for _, s := range steps {
		by, wan := trips(away, func() {
			if err := s.do(); err != nil {
				t.Fatalf("%s: %v", s.what, err)
			}
		})
		if wan > s.want {
			t.Errorf("%s: %d round trips, want %d: %+v", s.what, wan, s.want, by)
		}
	}
}

// TestTrips_AnotherNodeVoidsNothing meets a second node, which is a standby of
// the root's slice and says so. What its active granted stands.
func TestTrips_AnotherNodeVoidsNothing(t *testing.T) {
	_, away := far(t)
	ctx := context.Background()
	fs := away.FileSystem()
	ls(t, fs, mount.Root)
	if by, wan := trips(away, func() { ls(t, fs, mount.Root) }); wan != 0 {
		t.Fatalf("%d round trips for a known listing, want none: %+v", wan, by)
	}
	// It goes to a slice of this site, whose active was not talked to before.
	e, err := fs.Mkdir(ctx, nobody, mount.Root, "mine", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	by, wan := trips(away, func() {
		if _, err := fs.Lookup(ctx, nobody, mount.Root, "none"); err != nil {
			t.Error(err)
		}
		if _, err := fs.GetAttr(ctx, nobody, e.Node, 0); err != nil {
			t.Error(err)
		}
		ls(t, fs, mount.Root)
	})
	if wan != 0 || by["getattr"].Local != 0 {
		t.Errorf("%d round trips after meeting another node, want none, nor any for what was just made: %+v", wan, by)
	}
}

// TestTrips_WorkOverTwoSlicesIsCounted makes, renames and removes a file whose
// object lives at this site and whose name at another one.
func TestTrips_WorkOverTwoSlicesIsCounted(t *testing.T) {
	_, away := far(t)
	ctx := context.Background()
	fs := away.FileSystem()
	knod := func(name string) error {
		_, err := fs.Mknod(ctx, nobody, mount.Root, name, mount.TypeRegular|0o644, 0)
		return err
	}
	for _, s := range []struct {
		what string
		want uint64
		do   func() error
	}{
		{"mknod of the first file, with what it finds out", 6, func() error { return knod("one") }},
		{"lookup of a new name", 1, func() error { _, err := fs.Lookup(ctx, nobody, mount.Root, "two"); return err }},
		{"mknod", 3, func() error { return knod("two") }},
		// The way here, what to look for, an intent, a lock, a decision, and
		// telling of it; a file that is replaced is asked for apart.
		{"rename", 10, func() error { return fs.Rename(ctx, nobody, mount.Root, "one", mount.Root, "two", 0) }},
		{"unlink", 8, func() error { return fs.Unlink(ctx, nobody, mount.Root, "two") }},
	} {
		by, wan := trips(away, func() {
			if err := s.do(); err != nil {
				t.Fatalf("%s: %v", s.what, err)
			}
		})
		if wan > s.want {
			t.Errorf("%s: %d round trips, want %d: %+v", s.what, wan, s.want, by)
		}
	}
}
