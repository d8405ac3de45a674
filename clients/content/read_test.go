package content_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/diskcache"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// big stores a file as a client writes it, in chunks.
func big(t *testing.T, cluster *contenttest.Cluster, size int) []byte {
	t.Helper()
	data := random(9, size)
	e := content.New(cluster, content.Options{})
	h := e.Open(object, nil, content.Open{})
	stream(within(t), t, h, data)
	must(t, h.Flush(within(t)))
	h.Close()
	must(t, e.Close(within(t)))
	return data
}

// readAll reads a file in order and compares it.
func readAll(ctx context.Context, t *testing.T, e *content.Engine, cluster *contenttest.Cluster, want []byte) {
	t.Helper()
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 128<<10)
	for off := 0; off < len(want); off += len(buf) {
		n, err := h.ReadAt(ctx, buf, uint64(off))
		must(t, err)
		if !bytes.Equal(buf[:n], want[off:min(off+len(buf), len(want))]) {
			t.Fatalf("the bytes at %d are wrong", off)
		}
	}
}

// movedBytes is how much content was fetched so far.
func movedBytes(cluster *contenttest.Cluster) int64 {
	_, a := cluster.Calls(contenttest.GetChunks)
	_, b := cluster.Calls(contenttest.Range)
	return a + b
}

func TestRead_PrefetchesSequentialReadsOnce(t *testing.T) {
	tests := []struct {
		name    string
		o       content.Options
		data    contenttest.Call // that brings the bytes
		overlap bool
	}{
		{"range map and read-ahead", content.Options{}, contenttest.GetChunks, true},
		{"read-ahead alone", content.Options{NoRangeMap: true}, contenttest.Range, true},
		{"range map alone", content.Options{ReadAhead: -1}, contenttest.GetChunks, false},
		{"neither", content.Options{ReadAhead: -1, NoRangeMap: true}, contenttest.Range, false},
		{"a small cache", content.Options{CacheBytes: 6 << 20}, contenttest.GetChunks, true},
	}
	cluster := contenttest.New()
	want := big(t, cluster, 12<<20)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			moved := -movedBytes(cluster)
			var now, most atomic.Int32
			cluster.SetFaults(func(c contenttest.Call) contenttest.Outcome {
				if c != tt.data {
					return contenttest.Outcome{}
				}
				most.Store(max(most.Load(), now.Add(1)))
				wait := make(chan struct{})
				time.AfterFunc(time.Millisecond, func() { now.Add(-1); close(wait) })
				return contenttest.Outcome{Wait: wait}
			})
			e, ctx := newEngine(t, cluster, tt.o)
			readAll(ctx, t, e, cluster, want)
			if moved += movedBytes(cluster); moved > int64(len(want))+int64(len(want))/20 {
				t.Errorf("%d bytes were fetched for %d", moved, len(want))
			}
			if got := most.Load() > 1; got != tt.overlap && tt.o.CacheBytes == 0 { // a small one has a small window
				t.Errorf("at most %d requests at once", most.Load())
			}
			limit := tt.o.CacheBytes
			if limit == 0 {
				limit = 64 << 20
			}
			if got := e.Usage().CacheBytes; got > limit {
				t.Errorf("the cache has %d bytes, the bound is %d", got, limit)
			}
		})
	}
}

func TestRead_RandomReadAsksForItsBytesOnly(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 8<<20)
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 4096)
	const reads = 200
	for i := range reads {
		off := i * 7919 % (8 << 8) * 4096
		_, err := h.ReadAt(ctx, buf, uint64(off))
		must(t, err)
		if !bytes.Equal(buf, want[off:off+4096]) {
			t.Fatalf("the bytes at %d are wrong", off)
		}
	}
	ranges, a := cluster.Calls(contenttest.Range)
	gets, b := cluster.Calls(contenttest.GetChunks)
	if a+b > reads*4096 || ranges > 2 || gets > reads {
		t.Errorf("%d reads of 4 KiB: %d ranges, %d gets, %d bytes", reads, ranges, gets, a+b)
	}
}

func TestRead_SmallFileIsFetchedOnce(t *testing.T) {
	cluster := contenttest.New()
	want := random(5, 16<<10)
	cluster.Write(object, 0, want)
	e, ctx := newEngine(t, cluster, content.Options{})
	for range 10 {
		h := e.Open(object, cluster.Attr(object), content.Open{})
		got := make([]byte, 20<<10)
		n, err := h.ReadAt(ctx, got, 0)
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		h.Close()
	}
	if n, _ := cluster.Calls(contenttest.Range); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestRead_SurvivesFailedReadAhead(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 8<<20)
	var n atomic.Int32
	cluster.SetFaults(func(c contenttest.Call) contenttest.Outcome {
		if c == contenttest.GetChunks && n.Add(1)%2 == 1 {
			return contenttest.Outcome{Before: fault.E(fault.Unreachable, "test", "", "")}
		}
		return contenttest.Outcome{}
	})
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 128<<10)
	failed := 0
	for off := 0; off < len(want); off += len(buf) {
		for try := 0; ; try++ {
			_, err := h.ReadAt(ctx, buf, uint64(off))
			if err == nil {
				break
			}
			if failed++; try == 20 {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(buf, want[off:off+len(buf)]) {
			t.Fatalf("the bytes at %d are wrong", off)
		}
	}
	t.Logf("%d reads failed and were repeated", failed)
}

func TestRead_EndsWithItsContext(t *testing.T) {
	for _, call := range []contenttest.Call{contenttest.Range, contenttest.GetChunks, contenttest.Version} {
		cluster := contenttest.New()
		big(t, cluster, 4<<20)
		attr := cluster.Attr(object)
		cluster.SetFaults(on(call, contenttest.Outcome{Wait: make(chan struct{})}))
		e, _ := newEngine(t, cluster, content.Options{})
		if call == contenttest.Version {
			attr = nil
		}
		h := e.Open(object, attr, content.Open{})
		ctx, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
		buf := make([]byte, 256<<10)
		var err error
		for off := 0; err == nil && off < 4<<20; off += len(buf) {
			_, err = h.ReadAt(ctx, buf, uint64(off))
		}
		if err == nil {
			t.Errorf("%s hangs, but the read does not fail", call)
		}
		cancel()
		h.Close()
	}
}

// TestRead_DiskCacheServesAfterARestart reads a file twice, starts again, and
// reads it once more. The first read of a stream may go past the caches, as it
// does not wait for the range map. The second time, with the map at hand, every
// chunk is kept.
func TestRead_DiskCacheServesAfterARestart(t *testing.T) {
	cluster := contenttest.New()
	const first = 128 << 10 // readAll's first read
	want := big(t, cluster, 6<<20)
	dir := t.TempDir()
	for _, times := range []int{2, 1} {
		disk, err := diskcache.Open(dir, diskcache.Options{Limit: 64 << 20})
		must(t, err)
		e, ctx := newEngine(t, cluster, content.Options{Disk: disk})
		_, gets := cluster.Calls(contenttest.GetChunks)
		_, ranges := cluster.Calls(contenttest.Range)
		for range times {
			readAll(ctx, t, e, cluster, want)
		}
		must(t, e.Close(ctx))
		must(t, disk.Close()) // writes what waits
		_, a := cluster.Calls(contenttest.GetChunks)
		_, b := cluster.Calls(contenttest.Range)
		if times == 1 && (a != gets || b > ranges+first) {
			t.Errorf("%d and %d bytes were fetched although the disk has them", a-gets, b-ranges)
		}
	}
}

func TestRead_FailsOnAVersionThatStaysTooOld(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	newer := cluster.Write(object, 0, []byte("x"))
	newer.Version += 5 // the cluster was rolled back, say
	h := e.Open(object, newer, content.Open{})
	defer h.Close()
	e.Invalidate(object)
	if _, err := h.ReadAt(ctx, make([]byte, 1), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("got %v, want Stale", err)
	}
}

func TestSeek_FindsHolesInVersionsAndDirtyBytes(t *testing.T) {
	cluster := contenttest.New()
	cluster.Write(object, 0, random(1, 10000))
	cluster.Write(object, 200000, random(2, 10000))
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	must(t, h.WriteAt(ctx, []byte("dirty"), 100000))
	must(t, h.Allocate(ctx, content.PunchHole|content.KeepSize, 203000, 1000))
	tests := []struct{ off, data, hole uint64 }{
		{0, 0, 10000}, {10000, 100000, 10000}, {100000, 100000, 100005}, {100005, 200000, 100005},
		{200000, 200000, 203000}, {203500, 204000, 203500}, {204000, 204000, 210000},
	}
	for range 2 { // dirty, then committed
		for _, tt := range tests {
			data, err := h.SeekData(ctx, tt.off)
			hole, err2 := h.SeekHole(ctx, tt.off)
			if err != nil || err2 != nil || data != tt.data || hole != tt.hole {
				t.Errorf("from %d: data %d, %v, hole %d, %v, want %d and %d", tt.off, data, err, hole, err2, tt.data, tt.hole)
			}
		}
		if _, err := h.SeekData(ctx, 210000); !fault.Is(err, fault.NoDevice) {
			t.Errorf("behind the end: got %v, want NoDevice", err)
		}
		must(t, h.Flush(ctx))
	}
	must(t, h.Truncate(ctx, 1<<40))
	if _, err := h.SeekData(ctx, 210000); !fault.Is(err, fault.NoDevice) {
		t.Errorf("only a hole follows: got %v, want NoDevice", err)
	}
}

// asked is a cluster that counts the questions for extents.
type asked struct {
	*contenttest.Cluster
	n atomic.Int64
}

func (a *asked) Range(ctx context.Context, o ids.Object, q content.Query) (content.Answer, error) {
	if q.Extents {
		a.n.Add(1)
	}
	return a.Cluster.Range(ctx, o, q)
}

// TestSeek_PassesAHoleInOneStep looks for what is behind a hole of a tebibyte,
// in the version and in dirty bytes over it.
func TestSeek_PassesAHoleInOneStep(t *testing.T) {
	const end = 1 << 40
	cluster := &asked{Cluster: contenttest.New()}
	cluster.Write(object, 0, random(1, 10000))
	cluster.Write(object, end, random(2, 10000))
	e := content.New(cluster, content.Options{})
	ctx := within(t)
	h := e.Open(object, cluster.Attr(object), content.Open{})
	for _, dirty := range []bool{false, true} {
		if dirty {
			must(t, h.WriteAt(ctx, []byte("dirty"), end+1<<30))
		}
		for _, from := range []uint64{10000, 1 << 30, end - 1} {
			if at, err := h.SeekData(ctx, from); err != nil || at != end {
				t.Errorf("dirty %v, from %d: data at %d, %v, want %d", dirty, from, at, err, end)
			}
		}
		if at, err := h.SeekHole(ctx, end); err != nil || at != end+10000 {
			t.Errorf("dirty %v: a hole at %d, %v, want %d", dirty, at, err, end+10000)
		}
	}
	if n := cluster.n.Load(); n > 16 {
		t.Errorf("%d questions for extents, want one or two for each seek", n)
	}
	h.Close()
	must(t, e.Close(ctx))
}

// mapless is a cluster whose range maps never come.
type mapless struct{ *contenttest.Cluster }

func (m mapless) Range(ctx context.Context, o ids.Object, q content.Query) (content.Answer, error) {
	if q.Extents {
		<-ctx.Done()
		return content.Answer{}, ctx.Err()
	}
	return m.Cluster.Range(ctx, o, q)
}

func TestRead_FirstOfAStreamNeedsNoRangeMap(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 2<<20)
	e := content.New(mapless{cluster}, content.Options{})
	ctx := within(t)
	h := e.Open(object, cluster.Attr(object), content.Open{})
	buf := make([]byte, 128<<10)
	if _, err := h.ReadAt(ctx, buf, 0); err != nil || !bytes.Equal(buf, want[:len(buf)]) {
		t.Errorf("the first bytes are wrong: %v", err)
	}
	h.Close()
	must(t, e.Close(ctx))
}

// TestWhole_IsOfOneVersion asks for whole files. Bytes that are being written,
// or of a version that is not the current one, are not handed out as a file's
// content.
func TestWhole_IsOfOneVersion(t *testing.T) {
	for what, size := range map[string]int{"beside its record": 100, "in chunks": 20_000} {
		t.Run(what, func(t *testing.T) {
			cluster := contenttest.New()
			want := big(t, cluster, size)
			e := content.New(cluster, content.Options{})
			attr := cluster.Attr(object)
			h := e.Open(object, attr, content.Open{})
			whole := func(serial, most uint64, fetch bool) []byte {
				data, ok := h.Whole(within(t), serial, most, fetch)
				if ok != (data != nil) {
					t.Errorf("%d bytes, %v", len(data), ok)
				}
				return data
			}
			inline := attr.GetContent().GetRoot() == nil
			if got := whole(attr.Version, 64<<10, false); (got != nil) != inline {
				t.Errorf("%d bytes that were not asked for", len(got))
			}
			if got := whole(attr.Version, 64<<10, true); !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d came, or others", len(got), size)
			}
			if got := whole(attr.Version, 64<<10, false); !bytes.Equal(got, want) {
				t.Errorf("what came is not kept: %d bytes of %d", len(got), size)
			}
			if got := whole(attr.Version, uint64(size)-1, true); got != nil {
				t.Error("more came than was allowed")
			}
			if got := whole(attr.Version+1, 64<<10, true); got != nil {
				t.Error("another version's bytes came")
			}
			must(t, h.WriteAt(within(t), []byte("new"), 0))
			if got := whole(attr.Version, 64<<10, true); got != nil {
				t.Error("bytes came that are being written")
			}
			must(t, h.Flush(within(t)))
			if got := whole(cluster.Attr(object).Version, 64<<10, true); len(got) != size || string(got[:3]) != "new" {
				t.Errorf("after a commit %d bytes of %d came, or others", len(got), size)
			}
			e.Invalidate(object)
			if got := whole(cluster.Attr(object).Version, 64<<10, true); got != nil {
				t.Error("bytes came while the version is not known")
			}
			h.Close()
			must(t, e.Close(within(t)))
		})
	}
}
