//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/volume"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// heldBed is a cluster of three sites, with a volume whose client sends creates to all
// normal members at once, however near the active is.
type heldBed struct {
	*testing.T
	c      *servertest.Cluster
	v      *volume.Volume
	active *servertest.Node // of the volume's slice
	held   atomic.Int64     // creates that standbys said they keep
	// Drop says which frames a node does not send; nil: it sends all.
	drop func(from *servertest.Node, m wire.Method) bool
	mu   sync.RWMutex // guards drop
}

// quick gives nodes short leases.
func quick(_ int, c *server.Config) { c.Lease, c.Session = time.Second, time.Second }

func newHeldBed(t *testing.T, o servertest.Options) *heldBed {
	t.Helper()
	o.Sites = []string{"a", "b", "c"}
	configure := o.Configure
	o.Configure = func(i int, c *server.Config) {
		c.Socket = "none" // what a socket leads to is never far
		if configure != nil {
			configure(i, c)
		}
	}
	c := servertest.Start(t, o)
	b := &heldBed{T: t, c: c}
	cl := clientWith(t, c, cartwheel.Options{Far: cartwheel.Far{HoldFrom: 1}})
	var err error
	if b.v, err = volume.Make(t.Context(), cl, nobody, "/", "v"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.v.Close)
	b.create("first") // registers the client
	dir, err := cl.Walk(t.Context(), nobody, mount.Root, "/v")
	if err != nil {
		t.Fatal(err)
	}
	cl.Forget(dir.Node, 1)
	slice := ids.Object(dir.Attr.Ino).Slice()
	servertest.Await(t.Context(), t, "all members to be normal", func() error {
		row, err := c.Row(t.Context(), slice)
		if err == nil && len(row.Normals()) != 3 {
			err = fmt.Errorf("the row is %+v", row)
		}
		return err
	})
	b.active = c.Active(slice)
	for _, n := range c.Nodes {
		n.Server().Host().SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
			if m == method.Hold {
				b.held.Add(1)
			}
			b.mu.RLock()
			defer b.mu.RUnlock()
			return wire.Verdict{Drop: b.drop != nil && b.drop(n, m)}
		})
	}
	return b
}

func (b *heldBed) dropping(f func(from *servertest.Node, m wire.Method) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop = f
}

// entries are the active's messages to the standbys.
func (b *heldBed) entries(from *servertest.Node, m wire.Method) bool {
	return from == b.active && m == method.Replica
}

func (b *heldBed) create(name string) {
	b.Helper()
	if err := b.v.Create(b.Context(), name, []byte("content of "+name)); err != nil {
		b.Fatalf("%s: %v", name, err)
	}
}

// reads has a client of another site read files.
func (b *heldBed) reads(names ...string) {
	b.Helper()
	seen, err := volume.Open(b.Context(), client(b.T, b.c, "c"), nobody, "/v")
	if err != nil {
		b.Fatal(err)
	}
	defer seen.Close()
	for _, name := range names {
		if got, err := seen.Read(b.Context(), name); err != nil || !bytes.Equal(got, []byte("content of "+name)) {
			b.Errorf("%s: read %q, %v", name, got, err)
		}
	}
}

// TestCreate_TakesOneRoundTrip creates a file while the active sends the standbys
// nothing: they have it from the client. The active is lost, and the file is there.
func TestCreate_TakesOneRoundTrip(t *testing.T) {
	b := newHeldBed(t, servertest.Options{Configure: quick})
	b.dropping(b.entries)
	b.create("one")
	if n := b.held.Load(); n != 2 {
		t.Errorf("standbys kept %d creates, want one each", n)
	}
	b.active.Kill()
	b.reads("one")
	if err := b.v.Create(t.Context(), "one", []byte("again")); !fault.Is(err, fault.Exists) {
		t.Errorf("created again: got %v, want Exists", err)
	}
}

// TestCreate_FallsBackOnTheLog has a standby that never says that it keeps a create.
// The create waits for the log, and is there once.
func TestCreate_FallsBackOnTheLog(t *testing.T) {
	b := newHeldBed(t, servertest.Options{})
	b.dropping(func(from *servertest.Node, m wire.Method) bool { return m == method.Hold && from == b.c.Nodes[2] })
	b.create("one")
	b.dropping(nil)
	b.create("two")
	b.reads("one", "two")
	if err := b.v.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.v.Read(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted, then read: %v", err)
	}
}

// TestCreate_OlderMembersKeepNone has a member whose program keeps no creates.
func TestCreate_OlderMembersKeepNone(t *testing.T) {
	b := newHeldBed(t, servertest.Options{Depend: func(i int, d *server.Deps) {
		if i == 1 {
			d.Feature = version.PendingCreates - 1
		}
	}})
	b.create("one")
	if n := b.held.Load(); n != 0 {
		t.Errorf("members were sent %d creates", n)
	}
	b.reads("one")
}

// TestCreate_OneOfManyIsHeld has clients create the same names at once, each at all
// members. One of each succeeds, also behind the loss of the active.
func TestCreate_OneOfManyIsHeld(t *testing.T) {
	b := newHeldBed(t, servertest.Options{Configure: quick})
	all := []*volume.Volume{b.v}
	for range 2 {
		v, err := volume.Open(t.Context(), clientWith(t, b.c, cartwheel.Options{Far: cartwheel.Far{HoldFrom: 1}}), nobody, "/v")
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		all = append(all, v)
	}
	contents := map[string][]byte{}
	for round := range 20 {
		name := fmt.Sprint("f", round)
		errs, sent := make([]error, len(all)), make([][]byte, len(all))
		var done sync.WaitGroup
		for i, v := range all {
			sent[i] = noise(100)
			done.Go(func() { errs[i] = v.Create(t.Context(), name, sent[i]) })
		}
		done.Wait()
		for i, err := range errs {
			switch {
			case err == nil && contents[name] != nil:
				t.Errorf("%s was created twice", name)
			case err == nil:
				contents[name] = sent[i]
			case !fault.Is(err, fault.Exists):
				t.Errorf("%s: %v", name, err)
			}
		}
		if contents[name] == nil {
			t.Fatalf("%s was created by nobody: %v", name, errors.Join(errs...))
		}
	}
	if b.held.Load() == 0 {
		t.Error("no member kept a create: the test shows nothing")
	}
	for name := range contents {
		if err := all[1].Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if delete(contents, name); len(contents) == 10 {
			break
		}
	}
	b.active.Kill()
	for i := range 20 {
		name := fmt.Sprint("f", i)
		for _, v := range all {
			got, err := v.Read(t.Context(), name)
			if want := contents[name]; want == nil && !fault.Is(err, fault.NotFound) {
				t.Errorf("%s was deleted, and read: %d bytes, %v", name, len(got), err)
			} else if want != nil && !bytes.Equal(got, want) {
				t.Errorf("%s: read %d bytes, %v, not the winner's", name, len(got), err)
			}
		}
	}
}
