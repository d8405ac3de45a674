//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// copied copies all of a file into a new one as a kernel would, and returns it
// with an open handle.
func copied(t *testing.T, cl *cartwheel.Client, from mount.Entry, dir mount.Inode, name string, length int64) (mount.Entry, mount.Handle, error) {
	t.Helper()
	ctx := context.Background()
	in, err := cl.Open(ctx, nobody, from.Node, mount.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Release(from.Node, in.Handle, 1, false)
	to, out, err := cl.Create(ctx, nobody, dir, name, 0o644, mount.OpenRead|mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < length; {
		n, err := cl.CopyRange(ctx, nobody, from.Node, in.Handle, at, to.Node, out.Handle, at, length-at)
		if err != nil {
			return to, out.Handle, err
		}
		if n == 0 {
			t.Fatalf("nothing was copied at %d of %d", at, length)
		}
		at += n
	}
	return to, out.Handle, nil
}

// below looks names up, one below the other.
func below(t *testing.T, cl *cartwheel.Client, names ...string) mount.Inode {
	t.Helper()
	at := mount.Root
	for _, name := range names {
		e, err := cl.Lookup(context.Background(), nobody, at, name)
		if err != nil {
			t.Fatal(err)
		}
		at = e.Node
	}
	return at
}

func TestCopy_ByReferenceMovesNoByteAndKeepsHoles(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "b")
	ctx := context.Background()
	want := make([]byte, 5<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(want)
	from := put(t, cl, mount.Root, "from", string(want), 0)
	clear(want[1<<20 : 3<<20])
	o, err := cl.Open(ctx, nobody, from.Node, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	// The hole is still to be committed when the copy begins.
	if err := cl.Allocate(ctx, nobody, from.Node, o.Handle, 1<<20, 2<<20, mount.AllocatePunchHole|mount.AllocateKeepSize); err != nil {
		t.Fatal(err)
	}
	var moved atomic.Int64
	for _, n := range c.Nodes {
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			if m == method.Put || m == method.Get {
				moved.Add(1)
			}
			return wire.Verdict{}
		})
	}
	to, h, err := copied(t, cl, from, mount.Root, "to", int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	if moved.Load() != 0 {
		t.Errorf("%d calls moved chunks, want 0", moved.Load())
	}
	if at, err := cl.Seek(ctx, nobody, to.Node, h, 0, mount.SeekHole); err != nil || at < 1<<20 || at >= 3<<20 {
		t.Errorf("the copy has its hole at %d (%v), want 1 MiB", at, err)
	}
	if err := cl.Flush(ctx, nobody, to.Node, h, 1); err != nil {
		t.Fatal(err)
	}
	cl.Release(to.Node, h, 1, false)
	cl.Release(from.Node, o.Handle, 1, false)
	if got := get(t, other, mount.Root, "to"); !bytes.Equal([]byte(got), want) {
		t.Errorf("the copy has %d bytes, which are not those of the file", len(got))
	}
}

func TestCopy_LeavesTheRestToTheKernel(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	cl := clientOf(t, c, "a")
	ctx := context.Background()
	want := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(want)
	alone := put(t, cl, below(t, cl, ".Site=a", ".RepLevel=1"), "alone", string(want), 0)
	small := put(t, cl, mount.Root, "small", string(want[:1000]), 0)
	for _, each := range []struct {
		name   string
		from   mount.Entry
		dir    mount.Inode
		length int64
	}{
		{"its chunks are at another node", alone, below(t, cl, ".Site=b", ".RepLevel=1"), int64(len(want))},
		{"it is small", small, mount.Root, 1000},
	} {
		to, h, err := copied(t, cl, each.from, each.dir, "of "+each.name, each.length)
		if !fault.Is(err, fault.NotSupported) {
			t.Errorf("%s: got %v, want NotSupported", each.name, err)
		}
		if a, err := cl.GetAttr(ctx, nobody, to.Node, h); err != nil || a.Attr.Size != 0 {
			t.Errorf("%s: something was written: %+v, %v", each.name, a.Attr, err)
		}
		if _, err := cl.Write(ctx, nobody, to.Node, h, 0, []byte("x"), 0); err != nil {
			t.Errorf("%s: %v", each.name, err)
		}
		if err := cl.Flush(ctx, nobody, to.Node, h, 1); err != nil {
			t.Errorf("%s: %v", each.name, err)
		}
		cl.Release(to.Node, h, 1, false)
	}
}
