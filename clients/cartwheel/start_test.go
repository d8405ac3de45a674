//go:build linux

package cartwheel_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// started reads by StartRead; began says whether that was possible.
func started(cl *cartwheel.Client, h mount.Handle, off int64) (got []byte, ok, began bool) {
	done := make(chan struct{})
	began = cl.FileSystem().(mount.ReadStarter).StartRead(nobody, 0, h, off, 4096, func(data []byte, fine bool) {
		got, ok = append(got, data...), fine
		close(done)
	})
	if began {
		<-done
	}
	return got, ok, began
}

// TestStartRead_IsAnsweredAndCounted reads a large file at random without
// waiting. The bytes come and are counted as those of other reads. If the node
// does not answer, the read fails soon, and is not counted. If a trace is on,
// none begins.
func TestStartRead_IsAnsweredAndCounted(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	data := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // it never fails
	e := put(t, cl, mount.Root, "f", string(data), 0)
	cl.DropCaches(context.Background())
	ctx := context.Background()
	o, err := cl.Open(ctx, nobody, e.Node, mount.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Release(e.Node, o.Handle, 1, false)
	buf := make([]byte, 4096)
	for _, off := range []int64{3 << 20, 1 << 20, 3 << 20} { // which brings the map
		if _, err := cl.Read(ctx, nobody, e.Node, o.Handle, off, buf); err != nil {
			t.Fatal(err)
		}
	}
	by, _ := trips(cl, func() {
		got, ok, began := started(cl, o.Handle, 1<<20+5000)
		if !began || !ok || string(got) != string(data[1<<20+5000:][:4096]) {
			t.Errorf("began %v, answered %v, with %d bytes, or others than were written", began, ok, len(got))
		}
	})
	if x := by["read"]; x.Count != 1 || x.Calls != 1 || x.Local != 1 || x.WAN != 0 || x.In < 4096+32 || x.Out < 32+32 {
		t.Errorf("counted as %+v, want one read with one call within the site", x)
	}
	c.Nodes[0].Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Get}
	})
	by, _ = trips(cl, func() {
		if _, ok, began := started(cl, o.Handle, 3<<20+5000); !began || ok {
			t.Errorf("with no answer: began %v, answered %v", began, ok)
		}
	})
	if by["read"].Count != 0 {
		t.Errorf("a read that failed was counted: %+v", by["read"])
	}
	c.Nodes[0].Server().Host().SetFilter(nil)
	if _, ok, began := started(cl, o.Handle, 1<<20+5000); !began || !ok {
		t.Errorf("with answers again: began %v, answered %v", began, ok)
	}
	if err := cl.FileSystem().SetXattr(ctx, nobody, mount.Root, "user.cartwheel.trace.t", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, began := started(cl, o.Handle, 3<<20+5000); began {
		t.Error("a read began although somebody watches")
	}
}
