package cartwheel

import (
	"testing"
	"time"

	"cartwheel.dev/clients/mount"
)

// TestAPanicLeavesTheNodesUsable meets a bug while one request looks the nodes of
// a mount through. Every other request needs their mutex.
func TestAPanicLeavesTheNodesUsable(t *testing.T) {
	c := &Client{boot: func() time.Duration { return 0 }}
	c.nodes.init()
	c.nodes.byID[mount.Root] = &node{id: mount.Root}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the bug was not met")
			}
		}()
		c.dropKernel(func(*node) bool { panic("a bug") })
	}()
	if !c.nodes.mu.TryLock() {
		t.Error("the nodes' mutex is held for good")
	}
}
