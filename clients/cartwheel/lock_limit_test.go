//go:build linux

package cartwheel_test

import (
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// TestLock_NodesLimitIsMet takes a lock more than a node may hold.
func TestLock_NodesLimitIsMet(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}, Configure: func(_ int, conf *server.Config) { conf.MaxLocks = 1 }})
	cl := clientOf(t, c, "a")
	put(t, cl, mount.Root, "f", "x", 0)
	n, h := openIn(t, cl, "f")
	defer cl.Release(n, h, 1, false)
	byteOf := func(at uint64) mount.Lock {
		return mount.Lock{Owner: 1, Start: at, End: at, Type: mount.WriteLock}
	}
	take(t, cl, n, h, byteOf(0))
	if err := cl.SetLock(withTimeout(t), nobody, n, h, byteOf(10), false); !fault.Is(err, fault.NoLocks) {
		t.Errorf("a second lock: %v, want NoLocks", err)
	}
	if err := cl.SetLock(withTimeout(t), nobody, n, h, released(byteOf(0)), false); err != nil {
		t.Fatal(err)
	}
	take(t, cl, n, h, byteOf(10))
}
