//go:build linux

package cartwheel_test

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
)

// TestDropCaches_EndsOnASignal has caches dropped while bytes are dirty and no
// node can be reached. The caller is interrupted, and need not wait until the
// bytes are given up.
func TestDropCaches_EndsOnASignal(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := opened(t, c, cartwheel.Options{Site: "a", OpTimeout: time.Minute})
	e := put(t, cl, mount.Root, "f", "content", 0)
	o, err := cl.Open(t.Context(), nobody, e.Node, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	cl.CutOff(c.Nodes[0].ID())
	if _, err := cl.Write(t.Context(), nobody, e.Node, o.Handle, 0, []byte("dirty"), 0); err != nil {
		t.Fatal(err)
	}
	ctx, signal := context.WithCancel(t.Context())
	dropped := make(chan struct{})
	go func() { defer close(dropped); cl.DropCaches(ctx) }()
	select {
	case <-dropped:
		t.Error("the caches were dropped with bytes dirty that no node took")
	case <-time.After(300 * time.Millisecond):
	}
	signal()
	select {
	case <-dropped:
	case <-time.After(10 * time.Second):
		t.Error("the signal is not heeded")
	}
	cl.Lose() // what is dirty arrives, or Close would wait for it
	<-dropped
	cl.Release(e.Node, o.Handle, 1, false)
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
}
