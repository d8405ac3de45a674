//go:build linux

package cartwheel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// TestLookup_NameIsCachedUnderItsOwnLease looks a name up at a mount that is cut
// off before it has the attributes. It moves the name's directory elsewhere when
// the mount's lease has run out, and has the mount get another lease before the
// attributes come. The kernel may not keep the name under that one.
func TestLookup_NameIsCachedUnderItsOwnLease(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	other, cl := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "h", "other", 0)
	e, err := other.Mkdir(t.Context(), nobody, mount.Root, "d", 0o755)
	if err != nil {
		t.Fatal(err)
	}
	found(t, cl, "d")
	// This takes the lease of the attributes.
	if _, err := other.SetAttr(t.Context(), nobody, e.Node, mount.SetAttr{Valid: mount.SetMode, Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	node := c.Active(ids.RootSlice).Server().Host()
	node.SetFilter(func(_ string, _ wire.Class, m wire.Method) wire.Verdict {
		return wire.Verdict{Drop: m == method.Revoke}
	})
	held, heal, release := cl.Hold(method.GetAttr)
	var late mount.Entry
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		late, failed = cl.Lookup(context.Background(), nobody, mount.Root, "d")
	}()
	<-held
	err = other.Rename(t.Context(), nobody, mount.Root, "d", mount.Root, "moved", 0) // waits for the lease's end
	node.SetFilter(nil)
	heal()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	servertest.Await(ctx, t, "the mount to have a lease again", func() error {
		h, err := cl.Lookup(ctx, nobody, mount.Root, "h")
		if err == nil && h.EntryValid <= 0 {
			err = errors.New("there is none")
		}
		return err
	})
	release()
	<-done
	if err != nil || failed != nil {
		t.Fatalf("moving it: %v; looking it up: %v", err, failed)
	}
	if late.Node != 0 && late.EntryValid > 0 {
		t.Errorf("a name that is gone is believed for %v", late.EntryValid)
	}
}

// TestLookup_AttributesAreCachedNoLongerThanNames lists a directory in which
// others work too. The kernel may keep none of its names, so that it would not
// hear that the attributes of its files, which came with the listing, are old.
func TestLookup_AttributesAreCachedNoLongerThanNames(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	other, cl := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "f", "text", 0)
	found(t, cl, "f")
	put(t, other, mount.Root, "g", "other", 0) // takes the lease of the names
	for i := range 8 {                         // after some misses all of it is read
		if e, err := cl.Lookup(t.Context(), nobody, mount.Root, fmt.Sprint("none", i)); err != nil || e.Node != 0 {
			t.Fatalf("%v, %v", e, err)
		}
	}
	e, err := cl.Lookup(t.Context(), nobody, mount.Root, "g")
	if err != nil {
		t.Fatal(err)
	}
	if e.EntryValid != 0 || e.AttrValid != 0 {
		t.Errorf("the name is believed for %v, the attributes for %v; want neither", e.EntryValid, e.AttrValid)
	}
	r, err := cl.GetAttr(t.Context(), nobody, e.Node, 0)
	if err != nil || r.Valid != 0 {
		t.Errorf("then they are believed for %v, %v", r.Valid, err)
	}
}
