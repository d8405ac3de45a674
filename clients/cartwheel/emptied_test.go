//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
)

// TestEventual_OpenEmptiesWithItsCommit opens a file below the cue in order to write it
// anew. Its client finds it empty, and the others find what it had until the commit.
func TestEventual_OpenEmptiesWithItsCommit(t *testing.T) {
	t.Parallel()
	e := newEventual(t, "c", ".EventualConsistency")
	ctx := t.Context()
	for _, x := range []struct {
		name, text string
		open       func(entry mount.Entry) (mount.Inode, mount.Handle, error)
	}{
		{"by its name", "anew", func(mount.Entry) (mount.Inode, mount.Handle, error) {
			n, o, err := e.cl.Create(ctx, nobody, e.dir, "small", 0o644, mount.OpenWrite|mount.OpenTruncate)
			if n.Attr.Size != 0 {
				t.Errorf("the answer says that it has %d bytes", n.Attr.Size)
			}
			return n.Node, o.Handle, err
		}},
		{"by what it is", "again", func(entry mount.Entry) (mount.Inode, mount.Handle, error) {
			o, err := e.cl.Open(ctx, nobody, entry.Node, mount.OpenWrite|mount.OpenTruncate)
			return entry.Node, o.Handle, err
		}},
		{"and by its size, as Linux does", "once more", func(entry mount.Entry) (mount.Inode, mount.Handle, error) {
			o, err := e.cl.Open(ctx, nobody, entry.Node, mount.OpenWrite)
			if err == nil {
				_, err = e.cl.SetAttr(ctx, nobody, entry.Node, mount.SetAttr{Valid: mount.SetSize | mount.SetMtimeNow})
			}
			return entry.Node, o.Handle, err
		}},
		{"and nothing is written", "", func(entry mount.Entry) (mount.Inode, mount.Handle, error) {
			o, err := e.cl.Open(ctx, nobody, entry.Node, mount.OpenWrite|mount.OpenTruncate)
			return entry.Node, o.Handle, err
		}},
	} {
		before := get(t, e.maker, e.made, "small")
		if before == "" {
			t.Fatal("the file is empty before it is opened")
		}
		entry, err := e.cl.Lookup(ctx, nobody, e.dir, "small")
		if err != nil {
			t.Fatal(err)
		}
		n, h, err := x.open(entry)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if got := get(t, e.cl, e.dir, "small"); got != "" {
			t.Errorf("%s: who opened it finds %q", x.name, got)
		}
		e.maker.DropCaches(ctx)
		if got := get(t, e.maker, e.made, "small"); got != before {
			t.Errorf("%s: the others find %q before anything is committed, want %q", x.name, got, before)
		}
		if x.text != "" {
			if _, err := e.cl.Write(ctx, nobody, n, h, 0, []byte(x.text), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.cl.Flush(ctx, nobody, n, h, 1); err != nil {
			t.Fatal(err)
		}
		e.cl.Release(n, h, 1, false)
		e.maker.DropCaches(ctx)
		if got := get(t, e.maker, e.made, "small"); got != x.text {
			t.Errorf("%s: the others find %q once it is closed, want %q", x.name, got, x.text)
		}
	}
}
