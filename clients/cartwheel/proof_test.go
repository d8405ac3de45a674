//go:build linux

package cartwheel_test

import (
	"bytes"
	"context"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
)

// ann and bob are the callers that may use the keys of these names.
var (
	ann = mount.Caller{UID: 1000, GID: 1000}
	bob = mount.Caller{UID: 1001, GID: 1001}
)

// usersOf opens a client for ann and one for bob, and a folder that both may
// write.
func usersOf(t *testing.T) (anns, bobs *cartwheel.Client, dir string) {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	if _, err := clientOf(t, c, "a").Mkdir(context.Background(), nobody, mount.Root, "shared", 0o777); err != nil {
		t.Fatal(err)
	}
	for user, cl := range map[string]**cartwheel.Client{"ann": &anns, "bob": &bobs} {
		*cl = openedAs(t, c, user, cartwheel.Options{Site: "a"})
		t.Cleanup(func() {
			if err := (*cl).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return anns, bobs, "shared"
}

// copyIn makes a file of data in dir.
func copyIn(t *testing.T, cl *cartwheel.Client, who mount.Caller, dir, name string, data []byte) mount.Entry {
	t.Helper()
	ctx := withTimeout(t)
	d, err := cl.Lookup(ctx, who, mount.Root, dir)
	if err != nil {
		t.Fatal(err)
	}
	e, o, err := cl.Create(ctx, who, d.Node, name, 0o600, mount.OpenWrite|mount.OpenExclusive)
	for off := 0; err == nil && off < len(data); off += 128 << 10 {
		_, err = cl.Write(ctx, who, e.Node, o.Handle, int64(off), data[off:min(off+128<<10, len(data))], 0)
	}
	if err == nil {
		err = cl.Fsync(ctx, who, e.Node, o.Handle, false)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	cl.Release(e.Node, o.Handle, 1, false)
	return e
}

// TestProof_SecondCopyUploadsNoBytes writes a file twice with a key that acts as
// one user. The second time the client proves that it has the chunks, and sends
// none. Another user, who has the same bytes, sends none either.
func TestProof_SecondCopyUploadsNoBytes(t *testing.T) {
	anns, bobs, dir := usersOf(t)
	data := noise(6 << 20)
	puts := anns.Count(method.Put)
	copyIn(t, anns, ann, dir, "first", data)
	if puts.Load() == 0 {
		t.Fatal("the first copy was sent without its chunks; the test looks at nothing")
	}
	for _, x := range []struct {
		name string
		cl   *cartwheel.Client
		who  mount.Caller
	}{{"second", anns, ann}, {"bobs", bobs, bob}} {
		puts = x.cl.Count(method.Put)
		copyIn(t, x.cl, x.who, dir, x.name, data)
		if n := puts.Load(); n != 0 {
			t.Errorf("the copy %q sent %d batches of chunks that the nodes have", x.name, n)
		}
		if got := readAs(t, x.cl, x.who, dir, x.name); !bytes.Equal(got, data) {
			t.Errorf("the copy %q reads %d other bytes, want %d", x.name, len(got), len(data))
		}
	}
}

// TestProof_NeedsTheBytes lets a user name the chunks of another's file with
// other bytes. The client is told that the nodes lack them, and gets no right to
// use them.
func TestProof_NeedsTheBytes(t *testing.T) {
	anns, bobs, dir := usersOf(t)
	data := noise(1 << 20)
	e := copyIn(t, anns, ann, dir, "hers", data)
	var addresses []chunk.Address
	var sizes []uint32
	splitter := chunk.NewSplitter()
	for rest, from := data, 0; len(rest) > 0; {
		n, boundary := splitter.Next(rest)
		rest = rest[n:]
		if boundary || len(rest) == 0 {
			to := len(data) - len(rest)
			addresses = append(addresses, chunk.Sum(data[from:to]))
			sizes = append(sizes, uint32(to-from))
			from = to
		}
	}
	for _, x := range []struct {
		name    string
		body    []byte
		missing bool
	}{{"other bytes", make([]byte, len(data)), true}, {"the bytes", data, false}} {
		missing, err := bobs.Chunks().HaveChunks(withTimeout(t), ids.Object(e.Attr.Ino), addresses, sizes, [][]byte{x.body})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range missing {
			if m != x.missing || bobs.Owns(addresses[i]) == x.missing {
				t.Errorf("chunk %d of %d shown with %s: missing %v, owned %v, want missing %v", i, len(missing), x.name, m, bobs.Owns(addresses[i]), x.missing)
			}
		}
	}
}

func readAs(t *testing.T, cl *cartwheel.Client, who mount.Caller, dir, name string) []byte {
	t.Helper()
	ctx := withTimeout(t)
	d, err := cl.Lookup(ctx, who, mount.Root, dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cl.Lookup(ctx, who, d.Node, name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := cl.Open(ctx, who, e.Node, mount.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Release(e.Node, o.Handle, 1, false)
	out := make([]byte, e.Attr.Size)
	for at := 0; at < len(out); at += 128 << 10 {
		if _, err := cl.Read(ctx, who, e.Node, o.Handle, int64(at), out[at:min(at+128<<10, len(out))]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
