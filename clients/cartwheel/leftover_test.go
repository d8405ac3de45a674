package cartwheel_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestLeftovers_AreCommittedAsTheirWriter has a user write to files of root
// whose set-id bits are set, and the mount end before that is sent. The next one
// commits it as the user's, which clears the bits. What was written through an
// open file counts, whatever the file's mode is by now.
func TestLeftovers_AreCommittedAsTheirWriter(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	other := clientOf(t, c, "a")
	ctx := context.Background()
	user := mount.Caller{UID: 1000, GID: 1000}
	mode := func(name string, mode uint32) {
		t.Helper()
		e, err := other.Lookup(ctx, nobody, mount.Root, name)
		if err == nil {
			_, err = other.SetAttr(ctx, nobody, e.Node, mount.SetAttr{Valid: mount.SetMode, Mode: mode})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o := cartwheel.Options{Site: "a", CacheDir: t.TempDir(), OpTimeout: time.Second, FlushAfter: time.Hour}
	cl := opened(t, c, o)
	var done []func()
	for _, name := range []string{"open", "closed"} {
		put(t, other, mount.Root, name, "old", 0)
		mode(name, 0o666|mount.SetUID)
		e, err := cl.Lookup(ctx, user, mount.Root, name)
		if err != nil {
			t.Fatal(err)
		}
		h, err := cl.Open(ctx, user, e.Node, mount.OpenWrite)
		if err == nil {
			_, err = cl.Write(ctx, user, e.Node, h.Handle, 0, []byte("new"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, func() { cl.Release(e.Node, h.Handle, 1, false) })
	}
	cl.Host().SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	for _, f := range done {
		f()
	}
	if err := cl.Close(); err == nil {
		t.Fatal("a mount that is cut off closes as if all was committed")
	}
	mode("closed", 0o600|mount.SetUID)
	if err := opened(t, c, o).Close(); err != nil {
		t.Error(err)
	}
	other.DropCaches(ctx)
	for name, want := range map[string]struct {
		text string
		bits uint32
	}{"open": {"new", 0o666}, "closed": {"new", 0o600}} {
		e, err := other.Lookup(ctx, nobody, mount.Root, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, other, mount.Root, name); got != want.text || e.Attr.Mode&0o7777 != want.bits {
			t.Errorf("%s has %q and mode %o, want %q and %o", name, got, e.Attr.Mode&0o7777, want.text, want.bits)
		}
	}
}
