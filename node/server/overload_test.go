package server_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// TestOverload_HundredClientsGetThrough sends many more clients than a node
// takes at once. They are refused early and come again, all get through, and no
// member is taken out.
func TestOverload_HundredClientsGetThrough(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Configure: func(_ int, c *server.Config) {
		c.QueueLimit = 16
		c.Lease, c.Session = 10*time.Second, 10*time.Second // a slow machine changes no members
	}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	awaitWhole(ctx, t, c)
	before, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	const clients, each = 100, 5
	shared := []*servertest.Client{c.Connect("root"), c.Connect("root")}
	var made atomic.Int32
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for k := range each {
				result, err := shared[i%2].Operate(ctx, ids.RootSlice, create(fmt.Sprintf("f%d-%d", i, k)), nil)
				if err != nil || result.Kind != 0 {
					t.Errorf("client %d: %v %v", i, result, err)
					return
				}
				made.Add(1)
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != clients*each {
		t.Errorf("%d of %d files were made", n, clients*each)
	}
	after, err := c.Row(ctx, ids.RootSlice)
	if err != nil || after.Epoch != before.Epoch {
		t.Errorf("epoch %d became %d, %v: members changed under load", before.Epoch, after.Epoch, err)
	}
}
