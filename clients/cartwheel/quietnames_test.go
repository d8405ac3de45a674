//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
)

// TestRevoke_KeepsAttributesUnderAFileLease makes another file elsewhere in the
// directory of an open one. The kernel is told to drop the name of the open
// file, and not its attributes, which the lease on the file itself covers. It
// would ignore those that it asks for meanwhile, under a lock that was just
// taken, too.
func TestRevoke_KeepsAttributesUnderAFileLease(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl, other := clientOf(t, c, "a"), clientOf(t, c, "a")
	put(t, other, mount.Root, "open", "x", 0)
	k := &dropped{names: map[string]bool{}, inodes: map[mount.Inode]bool{}}
	cl.Init(k)
	e := found(t, cl, "open")
	o, err := cl.Open(t.Context(), nobody, e.Node, mount.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Release(e.Node, o.Handle, 1, false)
	if err := cl.SetLock(t.Context(), nobody, e.Node, o.Handle, mount.Lock{Owner: 1, Type: mount.WriteLock, Whole: true}, true); err != nil {
		t.Fatal(err)
	}
	found(t, cl, "open") // once more: leases of a cluster for tests are short
	k.mu.Lock()
	clear(k.inodes)
	k.mu.Unlock()
	put(t, other, mount.Root, "third", "x", 0)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.names["open"] {
		t.Fatalf("dropped are %v and %v: the lease on the directory was not revoked", k.names, k.inodes)
	}
	if k.inodes[e.Node] {
		t.Error("what the kernel knows of the open file was dropped")
	}
}
