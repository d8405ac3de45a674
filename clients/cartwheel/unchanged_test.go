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
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// delivery is a file in a directory that two clients share, which the one away from
// its active makes and has open for writing.
type delivery struct {
	*making
	dir  mount.Inode // of the client away
	home *cartwheel.Client
	seen mount.Entry // of the client at home
	// operations counts those of clients that nodes have answered.
	operations *atomic.Int64
}

// deliver makes one. The client at home knows names of the directory, so that no
// other client has it exclusively.
func deliver(t *testing.T) *delivery {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	active, sites := c.Active(ids.RootSlice), []string{"a", "b", "c"}
	home, away := clientOf(t, c, sites[active.Index]), clientOf(t, c, sites[(active.Index+1)%3])
	ctx := context.Background()
	keep, err := home.Lookup(ctx, nobody, mount.Root, ".KeepTogether")
	if err != nil {
		t.Fatal(err)
	}
	at, err := home.Mkdir(ctx, nobody, keep.Node, "new", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	d, err := away.Lookup(ctx, nobody, mount.Root, "new")
	if err != nil {
		t.Fatal(err)
	}
	ls(t, home, at.Node)
	var operations atomic.Int64
	for _, n := range c.Nodes {
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			if m == method.Operate { // an answer
				operations.Add(1)
			}
			return wire.Verdict{}
		})
	}
	f := &delivery{operations: &operations, making: begin(t, away, d.Node, "letter", ""), dir: d.Node, home: home}
	ls(t, home, at.Node)
	f.seen, err = home.Lookup(ctx, nobody, at.Node, "letter")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// set changes attributes as the client away.
func (f *delivery) set(who mount.Caller, s mount.SetAttr) (mount.Attr, error) {
	r, err := f.cl.SetAttr(context.Background(), who, f.e.Node, s)
	return r.Attr, err
}

// elsewhere is what the client at home sees.
func (f *delivery) elsewhere() mount.Attr {
	f.t.Helper()
	r, err := f.home.GetAttr(context.Background(), nobody, f.seen.Node, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return r.Attr
}

// same are changes that set what a new file has.
var same = []mount.SetAttr{
	{Valid: mount.SetOwner | mount.SetGroup | mount.SetKillSetID, UID: nobody.UID, GID: nobody.GID},
	{Valid: mount.SetMode, Mode: 0o640},
}

// TestUnchanged_TravelsWithTheCommit sets owner and mode to what they are, as mail
// servers do before they write. The active hears of the commit alone, which moves the
// ctime. The change shows here at once.
func TestUnchanged_TravelsWithTheCommit(t *testing.T) {
	f := deliver(t)
	ctx := context.Background()
	was := f.e.Attr.Ctime
	f.operations.Store(0)
	for range 2 {
		for _, s := range same {
			got, err := f.set(nobody, s)
			if err != nil || got.Ctime <= was {
				t.Errorf("%+v: got %+v, %v, want a ctime after %d", s, got, err, was)
			}
			was = got.Ctime
		}
	}
	if got := f.elsewhere().Ctime; got >= was {
		t.Errorf("another client sees the ctime %d before the commit, so it cannot tell who moved it", got)
	}
	if _, err := f.cl.Write(ctx, nobody, f.e.Node, f.h, 0, []byte("mail"), 0); err != nil {
		t.Fatal(err)
	}
	if got, err := f.set(nobody, same[1]); err != nil || got.Size != 4 {
		t.Errorf("behind a write: %+v, %v", got, err)
	}
	if err := f.cl.Fsync(ctx, nobody, f.e.Node, f.h, false); err != nil {
		t.Error(err)
	}
	f.done()
	if n := f.operations.Load(); n != 1 {
		t.Errorf("%d operations, want the commit alone", n)
	}
	if got := f.elsewhere(); got.Ctime < was || got.Size != 4 {
		t.Errorf("another client sees %+v, want 4 bytes and a ctime not before %d", got, was)
	}
}

// TestUnchanged_CloseMovesTheTime writes nothing: what a commit would have done, the
// close does, an fsync likewise, and a change that changes something.
func TestUnchanged_CloseMovesTheTime(t *testing.T) {
	for name, end := range map[string]func(*delivery) error{
		"close": func(f *delivery) error { return f.end() },
		"fsync": func(f *delivery) error { return f.cl.Fsync(context.Background(), nobody, f.e.Node, f.h, false) },
		"another mode": func(f *delivery) error {
			if _, err := f.set(nobody, mount.SetAttr{Valid: mount.SetMode, Mode: 0o600}); err != nil {
				return err
			}
			return f.end()
		},
	} {
		f := deliver(t)
		f.operations.Store(0)
		got, err := f.set(nobody, same[1])
		if err == nil {
			err = end(f)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if seen := f.elsewhere(); seen.Ctime < got.Ctime {
			t.Errorf("after %s, another client sees the ctime %d, want at least %d", name, seen.Ctime, got.Ctime)
		}
		if err := f.cl.Fsync(context.Background(), nobody, f.e.Node, f.h, false); name == "fsync" && err != nil {
			t.Error(err)
		}
		if n := f.operations.Load(); n != 1 {
			t.Errorf("%s: %d operations, want one that moves the time", name, n)
		}
	}
}

// TestUnchanged_BehindTheCloseItFollows changes what changes nothing after the close
// was answered and before the kernel lets the file go.
func TestUnchanged_BehindTheCloseItFollows(t *testing.T) {
	f := deliver(t)
	if err := f.cl.Flush(context.Background(), nobody, f.e.Node, f.h, 1); err != nil {
		t.Fatal(err)
	}
	got, err := f.set(nobody, same[1])
	if err != nil {
		t.Fatal(err)
	}
	f.cl.Release(f.e.Node, f.h, 1, false)
	ends, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	servertest.Await(ends, t, "the time to be moved", func() error {
		if seen := f.elsewhere().Ctime; seen < got.Ctime {
			return fmt.Errorf("another client sees %d, want %d", seen, got.Ctime)
		}
		return nil
	})
}

// TestUnchanged_LeavesTheRestToTheActive has changes that change something, or that
// the caller may not make, or of a file that this client does not write.
func TestUnchanged_LeavesTheRestToTheActive(t *testing.T) {
	f := deliver(t)
	stranger := mount.Caller{UID: nobody.UID + 1, GID: nobody.GID + 1}
	for _, s := range same {
		if _, err := f.set(stranger, s); !fault.Is(err, fault.NotOwner) {
			t.Errorf("%+v by a stranger: %v, want that it is not the owner", s, err)
		}
	}
	moves := func(what string, s mount.SetAttr, mode uint32) {
		t.Helper()
		before := f.elsewhere().Ctime
		if got, err := f.set(nobody, s); err != nil || got.Mode&0o7777 != mode {
			t.Errorf("%s: %o, %v, want %o", what, got.Mode, err, mode)
		}
		if seen := f.elsewhere(); seen.Ctime <= before || seen.Mode&0o7777 != mode {
			t.Errorf("%s: another client sees %+v, want mode %o and a ctime after %d", what, seen, mode, before)
		}
	}
	moves("another mode", mount.SetAttr{Valid: mount.SetMode, Mode: 0o4750}, 0o4750)
	moves("the same owner takes set-uid away", same[0], 0o750)
	moves("the same owner with another mode", mount.SetAttr{Valid: same[0].Valid | mount.SetMode, UID: nobody.UID, GID: nobody.GID, Mode: 0o640}, 0o640)
	moves("the same mode with a time", mount.SetAttr{Valid: mount.SetMode | mount.SetMtime, Mode: 0o640, Mtime: 5e9}, 0o640)
	f.done()
	moves("the same mode of a closed file", same[1], 0o640)
}

// TestUnchanged_AnotherClientsChangeStands changes the mode elsewhere between the
// change that changed nothing and the close.
func TestUnchanged_AnotherClientsChangeStands(t *testing.T) {
	f := deliver(t)
	if _, err := f.set(nobody, same[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := f.home.SetAttr(context.Background(), nobody, f.seen.Node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	f.done()
	if got := f.elsewhere().Mode & 0o777; got != 0o600 {
		t.Errorf("the mode is %o, want the 600 that came later", got)
	}
}
