//go:build linux

package cartwheel_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/node/server/servertest"
)

// BenchmarkCreate makes, writes and closes files of 16 KiB, as a kernel's
// requests would, from eight threads in directories of their own.
func BenchmarkCreate(b *testing.B) {
	c := servertest.Start(b, servertest.Options{Sites: []string{"a"}, Folders: true})
	cl := clientOf(b, c, "a")
	ctx, who := context.Background(), mount.Caller{}
	data := make([]byte, 16<<10)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range 8 {
		wg.Go(func() {
			d, err := cl.Mkdir(ctx, who, mount.Root, fmt.Sprint("d", i), 0o755)
			if err != nil {
				b.Error(err)
				return
			}
			for k := 0; left.Add(-1) >= 0; k++ {
				name := fmt.Sprint("f", k)
				if _, err := cl.Lookup(ctx, who, d.Node, name); err != nil {
					b.Error(err)
					return
				}
				e, o, err := cl.Create(ctx, who, d.Node, name, 0o644, mount.OpenWrite)
				if err == nil {
					_, err = cl.Write(ctx, who, e.Node, o.Handle, 0, data, 0)
				}
				if err == nil {
					err = cl.Flush(ctx, who, e.Node, o.Handle, 1)
				}
				if err != nil {
					b.Error(err)
					return
				}
				cl.Release(e.Node, o.Handle, 1, false)
			}
		})
	}
	wg.Wait()
}
