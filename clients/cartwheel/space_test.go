//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server/servertest"
)

// TestAllocate_NoMoreThanIsFree asks for room for a file, in each way there is.
// More than the disk has is refused, and changes nothing.
func TestAllocate_NoMoreThanIsFree(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := clientOf(t, c, "a")
	e := put(t, cl, mount.Root, "f", "content", 0)
	o, err := cl.Open(t.Context(), nobody, e.Node, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Release(e.Node, o.Handle, 1, false)
	for _, mode := range []mount.AllocateMode{0, mount.AllocateKeepSize, mount.AllocateZeroRange} {
		if err := cl.Allocate(t.Context(), nobody, e.Node, o.Handle, 0, 1<<50, mode); !fault.Is(err, fault.NoSpace) {
			t.Errorf("mode %d: a pebibyte: %v, want NoSpace", mode, err)
		}
		if err := cl.Allocate(t.Context(), nobody, e.Node, o.Handle, 0, 1<<20, mode); err != nil {
			t.Errorf("mode %d: a mebibyte: %v", mode, err)
		}
	}
	hole := mount.AllocatePunchHole | mount.AllocateKeepSize
	if err := cl.Allocate(t.Context(), nobody, e.Node, o.Handle, 0, 1<<50, hole); err != nil {
		t.Errorf("a hole takes no room: %v", err)
	}
	if a, err := cl.GetAttr(t.Context(), nobody, e.Node, o.Handle); err != nil || a.Attr.Size != 1<<20 {
		t.Errorf("the file has %d bytes, %v, want a mebibyte", a.Attr.Size, err)
	}
}
