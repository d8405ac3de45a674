package server_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server/servertest"
)

// BenchmarkCreateAndCommit measures pairs of a create and a commit of 16 KiB,
// from eight callers at once, against three nodes with real disks.
func BenchmarkCreateAndCommit(b *testing.B) {
	c := servertest.Start(b, servertest.Options{Folders: true})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	const callers = 8
	clients := make([]*servertest.Client, callers)
	for i := range clients {
		clients[i] = c.Connect("root")
		if _, err := clients[i].Operate(ctx, ids.RootSlice, create(fmt.Sprintf("warm%d", i)), nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for i, cl := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := i; n < b.N; n += callers {
				made, err := cl.Operate(ctx, ids.RootSlice, create(fmt.Sprintf("file%d", n)), nil)
				if err != nil || made.Kind != 0 {
					b.Errorf("create: %v %v", made, err)
					return
				}
				body := bytes.Repeat([]byte{byte(n), byte(n >> 8), byte(n >> 16), 7}, 4096)
				wrote, err := cl.Operate(ctx, ids.RootSlice, commit(made.Attr.Object, len(body)), body)
				if err != nil || wrote.Kind != 0 {
					b.Errorf("commit: %v %v", wrote, err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "pairs/s")
}
