package content_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
)

func TestFetchWhole_LeavesNothingToAskFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := contenttest.New()
		want := big(t, cluster, 8<<20)
		e, ctx := newEngine(t, cluster, content.Options{})
		h := e.Open(object, cluster.Attr(object), content.Open{})
		defer h.Close()
		h.FetchWhole()
		synctest.Wait()
		_, before := cluster.Calls(contenttest.GetChunks)
		if before != int64(len(want)) {
			t.Errorf("%d bytes of %d came", before, len(want))
		}
		buf := make([]byte, 4096)
		for _, off := range []int{5 << 20, 100, len(want) - len(buf), 3 << 20} {
			if _, err := h.ReadAt(ctx, buf, uint64(off)); err != nil || !bytes.Equal(buf, want[off:off+len(buf)]) {
				t.Errorf("the bytes at %d are wrong: %v", off, err)
			}
		}
		if _, after := cluster.Calls(contenttest.GetChunks); after != before {
			t.Errorf("%d bytes more were asked for", after-before)
		}
	})
}

func TestFetchWhole_IsBoundedByTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := contenttest.New()
		big(t, cluster, 32<<20)
		e, _ := newEngine(t, cluster, content.Options{CacheBytes: 16 << 20})
		h := e.Open(object, cluster.Attr(object), content.Open{})
		defer h.Close()
		h.FetchWhole()
		synctest.Wait()
		// What is read ahead of the last step comes too.
		if _, n := cluster.Calls(contenttest.GetChunks); n < 8<<20 || n > 16<<20 {
			t.Errorf("%d bytes came, want about half of the cache", n)
		}
	})
}

func TestFetchWhole_EndsWithItsHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := contenttest.New()
		big(t, cluster, 8<<20)
		never := make(chan struct{})
		cluster.SetFaults(on(contenttest.GetChunks, contenttest.Outcome{Wait: never}))
		e, _ := newEngine(t, cluster, content.Options{})
		h := e.Open(object, cluster.Attr(object), content.Open{})
		h.FetchWhole()
		synctest.Wait()
		h.Close()
		synctest.Wait()
		before, _ := cluster.Calls(contenttest.GetChunks)
		close(never)
		synctest.Wait()
		if after, _ := cluster.Calls(contenttest.GetChunks); after != before {
			t.Errorf("%d requests more after the close", after-before)
		}
	})
}
