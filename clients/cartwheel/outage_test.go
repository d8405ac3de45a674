//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// cut drops all that a node gets, until the function returned is called.
func cut(n *servertest.Node) (heal func()) {
	host := n.Server().Host()
	host.SetFilter(func(string, wire.Class, wire.Method) wire.Verdict { return wire.Verdict{Drop: true} })
	return func() { host.SetFilter(nil) }
}

func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(out) // it never fails
	return out
}

// TestOutage_WritesArriveAfterIt copies a file while its node is away for longer
// than an operation may take. The close fails, and once the node is back all
// bytes arrive by themselves.
func TestOutage_WritesArriveAfterIt(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	reader := clientOf(t, c, "a")
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: 2 * time.Second})
	ctx := context.Background()
	const piece = 1 << 20
	data := noise(8 * piece)
	e, o, err := cl.Create(ctx, nobody, mount.Root, "copy", 0o644, mount.OpenWrite|mount.OpenExclusive)
	if err != nil {
		t.Fatal(err)
	}
	heal := func() {}
	for off := 0; off < len(data); off += piece {
		if off == 2*piece {
			heal = cut(c.Nodes[0])
		}
		if n, err := cl.Write(ctx, nobody, e.Node, o.Handle, int64(off), data[off:off+piece], 0); err != nil || n != piece {
			t.Fatalf("a write in the outage: %d bytes, %v", n, err)
		}
	}
	if err := cl.Flush(ctx, nobody, e.Node, o.Handle, 1); !fault.Is(err, fault.TimedOut) {
		t.Errorf("a close in the outage: got %v, want TimedOut", err)
	}
	cl.Release(e.Node, o.Handle, 1, false)
	if files, unsent := cl.Unsent(); files != 1 || unsent == 0 {
		t.Errorf("%d files with %d bytes are unsent, want 1 with some", files, unsent)
	}
	heal()
	if err := cl.Close(); err != nil {
		t.Errorf("closing after the outage: %v", err)
	}
	if got := get(t, reader, mount.Root, "copy"); !bytes.Equal([]byte(got), data) {
		t.Errorf("after the outage the file has %d other bytes, want %d", len(got), len(data))
	}
}

// TestOutage_CloseNamesUnsavedFiles ends a mount in an outage, after the program
// that wrote through a memory map has ended. The error names the file, and the
// next mount with the same cache folder sends it.
func TestOutage_CloseNamesUnsavedFiles(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	reader := clientOf(t, c, "a")
	put(t, reader, mount.Root, "mapped", strings.Repeat("old ", 1000), 0)
	for _, folder := range []string{"", t.TempDir()} {
		o := cartwheel.Options{Site: "a", CacheDir: folder, OpTimeout: time.Second}
		cl := opened(t, c, o)
		ctx := context.Background()
		e, err := cl.Lookup(ctx, nobody, mount.Root, "mapped")
		if err != nil {
			t.Fatal(err)
		}
		h, err := cl.Open(ctx, nobody, e.Node, mount.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		heal := cut(c.Nodes[0])
		if _, err := cl.Write(ctx, nobody, e.Node, h.Handle, 0, []byte("new"), 0); err != nil {
			t.Fatal(err)
		}
		cl.Release(e.Node, h.Handle, 1, false) // no close: a map outlives the descriptor
		err = cl.Close()
		if err == nil || !strings.Contains(err.Error(), "mapped") || !strings.Contains(err.Error(), "1 files with 3 unsent bytes") {
			t.Errorf("cache folder %q: got %v, want an error that names the file", folder, err)
		}
		heal()
		if folder == "" {
			continue
		}
		if err := opened(t, c, o).Close(); err != nil {
			t.Error(err)
		}
		reader.DropCaches(context.Background())
		if got := get(t, reader, mount.Root, "mapped"); !strings.HasPrefix(got, "new ") {
			t.Errorf("after the next mount the file begins with %.8q", got)
		}
	}
}

// TestOutage_SoftMountGivesAWriteUp shows that only a soft mount forgets what
// its nodes did not take.
func TestOutage_SoftMountGivesAWriteUp(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: time.Second, Soft: true})
	put(t, cl, mount.Root, "f", "old", 0)
	ctx := context.Background()
	e, err := cl.Lookup(ctx, nobody, mount.Root, "f")
	if err != nil {
		t.Fatal(err)
	}
	h, err := cl.Open(ctx, nobody, e.Node, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	heal := cut(c.Nodes[0])
	if _, err := cl.Write(ctx, nobody, e.Node, h.Handle, 0, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	for {
		if err := cl.Flush(ctx, nobody, e.Node, h.Handle, 1); err == nil {
			t.Fatal("a flush in the outage says that all is well")
		}
		if len(cl.Unsaved()) == 0 { // else it was given up behind that flush, and the next one tells
			break
		}
	}
	cl.Release(e.Node, h.Handle, 1, false)
	if err := cl.Close(); err != nil {
		t.Errorf("the program was told, and closing says %v", err)
	}
	heal()
}

// TestStatFS_AsksAllNodesAtOnce has no node answer. Asked one after the other,
// the last would be asked only when the others had used up their limits, of 2 s
// each.
func TestStatFS_AsksAllNodesAtOnce(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	cl := clientOf(t, c, "a")
	put(t, cl, mount.Root, "warm", "x", 0)
	asked := make(chan int, len(c.Nodes))
	for i, n := range c.Nodes {
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			if m != method.Statfs {
				return wire.Verdict{}
			}
			asked <- i
			return wire.Verdict{Drop: true}
		})
		t.Cleanup(func() { n.Server().Host().SetFilter(nil) })
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = cl.StatFS(ctx, nobody, mount.Root) // no node answers
	}()
	var first time.Time
	for i := range c.Nodes {
		select {
		case <-asked:
			if i == 0 {
				first = time.Now()
			}
		case <-ended:
			t.Fatal("it ended before all nodes were asked")
		}
	}
	if took := time.Since(first); took > 3*time.Second {
		t.Errorf("the last node was asked %v after the first", took)
	}
	<-ended
}

// TestDropCaches_OnlyByTheMountsOwner sets the attribute that does so.
func TestDropCaches_OnlyByTheMountsOwner(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	e := put(t, cl, mount.Root, "f", "x", 0)
	drop := func(who mount.Caller) error {
		return cl.SetXattr(context.Background(), who, e.Node, "user.cartwheel.drop-caches", []byte("1"), 0)
	}
	if err := drop(mount.Caller{UID: 4711, GID: 4711}); !fault.Is(err, fault.Permission) {
		t.Errorf("another user: got %v, want Permission", err)
	}
	if err := drop(nobody); err != nil {
		t.Errorf("root: %v", err)
	}
}
