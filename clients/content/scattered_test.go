package content_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
)

// watched is a cluster that notes which chunks are asked for, in order.
type watched struct {
	*contenttest.Cluster

	mu            sync.Mutex // guards below
	order         []uint64   // where in the file
	now, most     int        // requests at once
	parts, shared bool       // some were parts of chunks; all were to be shared
}

// StartGet implements content.Starter.
func (w *watched) StartGet(ids.Object, content.Part, *trace.Operation, func([]byte, bool)) bool {
	return true
}

// GetChunks implements content.Remote.
func (w *watched) GetChunks(ctx context.Context, o ids.Object, parts []content.Part, try int) ([]byte, error) {
	w.mu.Lock()
	for _, p := range parts {
		w.order = append(w.order, p.At)
		w.parts = w.parts || p.Length != p.Size
		w.shared = w.shared && p.Shared
	}
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	w.mu.Lock()
	w.now--
	w.mu.Unlock()
	return w.Cluster.GetChunks(ctx, o, parts, try)
}

// first returns the chunks that were asked for first, all at once.
func first(w *watched) []uint64 { return slices.Sorted(slices.Values(w.order[:16])) }

// fetchedInOrder fetches a file whole and shared, and returns in which order.
func fetchedInOrder(t *testing.T, own uint64, o content.Options) (w *watched, want []byte) {
	t.Helper()
	w = &watched{Cluster: contenttest.New(), shared: true}
	want = big(t, w.Cluster, 8<<20)
	o.Order = own
	e := content.New(w, o)
	defer e.Close(within(t))
	h := e.Open(object, w.Attr(object), content.Open{Shared: true})
	defer h.Close()
	h.FetchWhole()
	time.Sleep(time.Minute)
	synctest.Wait()
	if o.CacheBytes == 0 {
		got := make([]byte, len(want))
		if n, err := h.ReadAt(within(t), got, 0); err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("%d bytes came back, or others: %v", n, err)
		}
	}
	return w, want
}

func TestFetchWhole_SharedGoesInAnOrderOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, want := fetchedInOrder(t, 1, content.Options{})
		two, _ := fetchedInOrder(t, 2, content.Options{})
		if _, n := one.Calls(contenttest.GetChunks); n != int64(len(want)) || one.parts || !one.shared {
			t.Errorf("%d bytes of %d came; parts of chunks: %v; all of it at this site: %v", n, len(want), one.parts, one.shared)
		}
		if again, _ := fetchedInOrder(t, 1, content.Options{}); !slices.Equal(first(again), first(one)) {
			t.Error("one client fetches in one order, and then in another one")
		}
		file := slices.Sorted(slices.Values(one.order))
		if slices.Equal(first(one), first(two)) || slices.Equal(first(one), file[:16]) {
			t.Error("two clients fetch in one order, or in the file's")
		}
		if one.most < 2 || one.most > 16 {
			t.Errorf("%d chunks were asked for at once, want some, and at most 16", one.most)
		}
		if !slices.Equal(file, slices.Sorted(slices.Values(two.order))) {
			t.Error("two clients fetch other chunks")
		}
	})
}

func TestFetchWhole_SharedIsBoundedByTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, want := fetchedInOrder(t, 1, content.Options{CacheBytes: 4 << 20})
		if _, n := w.Calls(contenttest.GetChunks); n < 1<<20 || n > 3<<20 {
			t.Errorf("%d bytes of %d came, want about half of the cache", n, len(want))
		}
	})
}

// TestRead_SharedAsksForWholeChunks reads here and there, of a large and of a small
// file. Nothing is read past the nodes of the site but the range map.
func TestRead_SharedAsksForWholeChunks(t *testing.T) {
	for _, size := range []int{3 << 20, 100 << 10} {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{Cluster: contenttest.New(), shared: true}
			want := big(t, w.Cluster, size)
			_, before := w.Calls(contenttest.Range)
			e := content.New(w, content.Options{})
			defer e.Close(within(t))
			h := e.Open(object, w.Attr(object), content.Open{Shared: true})
			defer h.Close()
			buf := make([]byte, 4096)
			for _, off := range []int{size / 2, 100, size - len(buf), size / 3} {
				if n, err := h.ReadAt(within(t), buf, uint64(off)); err != nil || !bytes.Equal(buf[:n], want[off:off+len(buf)]) {
					t.Errorf("the bytes at %d are wrong: %v", off, err)
				}
			}
			if h.StartRead(nil, len(buf), uint64(size)*3/4, func([]byte, bool) {}) {
				t.Error("a read asks for a part of a chunk of the members")
			}
			if _, n := w.Calls(contenttest.Range); n != before || w.parts || !w.shared || len(w.order) == 0 {
				t.Errorf("%d bytes came by range; parts of chunks: %v; all at this site: %v", n-before, w.parts, w.shared)
			}
		})
	}
}
