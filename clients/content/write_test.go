package content_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// random returns n bytes that depend on the seed only.
func random(seed byte, n int) []byte {
	p := play{pattern: seed}
	return p.bytes(n)
}

func newEngine(t *testing.T, c *contenttest.Cluster, o content.Options) (*content.Engine, context.Context) {
	t.Helper()
	e := content.New(c, o)
	ctx := within(t)
	t.Cleanup(func() { _ = e.Close(ctx) }) // tests look at what they expect themselves
	return e, ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stream writes data in pieces as a kernel does.
func stream(ctx context.Context, t *testing.T, h *content.Handle, data []byte) {
	t.Helper()
	for off := 0; off < len(data); off += 128 << 10 {
		must(t, h.WriteAt(ctx, data[off:min(off+128<<10, len(data))], uint64(off)))
	}
}

// on makes one call behave otherwise.
func on(call contenttest.Call, o contenttest.Outcome) func(contenttest.Call) contenttest.Outcome {
	return func(c contenttest.Call) contenttest.Outcome {
		if c == call {
			return o
		}
		return contenttest.Outcome{}
	}
}

func TestFlush_ReportsAnErrorOnceToEachHandle(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	one, two := e.Open(object, nil, content.Open{}), e.Open(object, nil, content.Open{})
	cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{Before: fault.E(fault.NoSpace, "test", "", "")}))
	must(t, one.WriteAt(ctx, []byte("x"), 0))
	must(t, e.FlushObject(context.WithoutCancel(ctx), object+1))
	if err := e.FlushObject(ctx, object); !fault.Is(err, fault.NoSpace) {
		t.Errorf("FlushObject: got %v", err)
	}
	cluster.SetFaults(nil)
	if err := one.WriteAt(ctx, []byte("x"), 0); !fault.Is(err, fault.NoSpace) {
		t.Errorf("the first handle's next write: got %v, want NoSpace", err)
	}
	must(t, one.Flush(ctx))
	if err := two.Sync(ctx); !fault.Is(err, fault.NoSpace) {
		t.Errorf("the second handle's sync: got %v, want NoSpace", err)
	}
	must(t, two.Sync(ctx))
	three := e.Open(object, nil, content.Open{})
	must(t, three.Flush(ctx)) // it was told to others
	for _, h := range []*content.Handle{one, two, three} {
		h.Close()
	}
	if err := one.WriteAt(ctx, []byte("x"), 0); !fault.Is(err, fault.BadHandle) {
		t.Errorf("a closed handle: got %v, want BadHandle", err)
	}
}

func TestFlush_InterruptedSendsNothingTwice(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, nil, content.Open{})
	defer h.Close()
	gate := make(chan struct{})
	cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{Wait: gate}))
	_, err := h.Append(ctx, []byte("once"))
	must(t, err)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := h.Flush(short); err == nil {
		t.Error("an interrupted flush says that all went well")
	}
	close(gate)
	must(t, h.Flush(ctx))
	if got := string(cluster.Contents(object)); got != "once" {
		t.Errorf("got %q", got)
	}
	if n, _ := cluster.Calls(contenttest.Commit); n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
}

func TestFlush_LostAnswerIsNotSentAgain(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{Soft: true})
	h := e.Open(object, nil, content.Open{})
	defer h.Close()
	cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{After: fault.E(fault.TimedOut, "test", "", "")}))
	_, err := h.Append(ctx, []byte("once"))
	must(t, err)
	if err := h.Flush(ctx); !fault.Is(err, fault.TimedOut) {
		t.Errorf("got %v, want TimedOut", err)
	}
	cluster.SetFaults(nil)
	must(t, h.Flush(ctx))
	if got := string(cluster.Contents(object)); got != "once" {
		t.Errorf("got %q", got)
	}
	buf := make([]byte, 10)
	if n, err := h.ReadAt(ctx, buf, 0); err != nil || string(buf[:n]) != "once" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func TestWrite_WaitsWhereTooMuchIsDirty(t *testing.T) {
	cluster := contenttest.New()
	const bound = 4 << 20
	e, ctx := newEngine(t, cluster, content.Options{DirtyBytes: bound})
	gate := make(chan struct{})
	cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{Wait: gate}))
	var most atomic.Int64
	var group sync.WaitGroup
	data := random(1, 3<<20)
	for i := range 4 {
		group.Go(func() {
			h := e.Open(object+ids.Object(i), nil, content.Open{})
			defer h.Close()
			for off := 0; off < len(data); off += 64 << 10 {
				if err := h.WriteAt(ctx, data[off:off+64<<10], uint64(off)); err != nil {
					t.Error(err)
				}
				most.Store(max(most.Load(), e.Usage().DirtyBytes))
			}
			if err := h.Flush(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	full := e.Open(object+100, nil, content.Open{})
	defer full.Close()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	var err error
	for i := 0; err == nil; i++ {
		err = full.WriteAt(short, data[:1<<20], uint64(i)<<20)
	}
	if !fault.Is(err, fault.TimedOut) && !fault.Is(err, fault.Interrupted) {
		t.Errorf("a writer that gave up waiting: got %v", err)
	}
	close(gate)
	group.Wait()
	must(t, full.Flush(ctx))
	if got := most.Load(); got > bound+2<<20 {
		t.Errorf("%d bytes were dirty, the bound is %d", got, bound)
	}
	for i := range 4 {
		if !bytes.Equal(cluster.Contents(object+ids.Object(i)), data) {
			t.Errorf("file %d is wrong", i)
		}
	}
	if got := e.Usage().DirtyBytes; got != 0 {
		t.Errorf("%d bytes are charged for ever", got)
	}
}

func TestFlush_SmallFileIsOneCommit(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	data := random(1, 200<<10)
	for off := 0; off < len(data); off += 4096 {
		must(t, h.WriteAt(ctx, data[off:min(off+4096, len(data))], uint64(off)))
	}
	must(t, h.Flush(ctx))
	h.Close()
	commits, _ := cluster.Calls(contenttest.Commit)
	puts, _ := cluster.Calls(contenttest.PutChunks)
	haves, _ := cluster.Calls(contenttest.HaveChunks)
	versions, _ := cluster.Calls(contenttest.Version)
	if commits != 1 || puts+haves+versions != 0 {
		t.Errorf("%d commits, %d puts, %d questions, %d versions, want 1 commit alone", commits, puts, haves, versions)
	}
	if !bytes.Equal(cluster.Contents(object), data) {
		t.Error("the content is wrong")
	}
}

func TestWrite_UploadsAStreamMeanwhile(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	var puts atomic.Int32
	both := make(chan struct{}) // closed when two are on their way at once
	cluster.SetFaults(func(c contenttest.Call) contenttest.Outcome {
		if c != contenttest.PutChunks {
			return contenttest.Outcome{}
		}
		if puts.Add(1) == 2 {
			close(both)
		}
		return contenttest.Outcome{Wait: both}
	})
	data := random(2, 12<<20)
	h := e.Open(object, nil, content.Open{})
	stream(ctx, t, h, data)
	select {
	case <-both:
	case <-ctx.Done():
		t.Fatal("uploads do not overlap with writing and with each other")
	}
	must(t, h.Flush(ctx))
	h.Close()
	if !bytes.Equal(cluster.Contents(object), data) {
		t.Fatal("the content is wrong")
	}
	if n, _ := cluster.Calls(contenttest.HaveChunks); n > 4 {
		t.Errorf("fresh data was asked for %d times", n)
	}
	_, before := cluster.Calls(contenttest.PutChunks)
	again := e.Open(object+1, nil, content.Open{})
	stream(ctx, t, again, data)
	must(t, again.Flush(ctx))
	again.Close()
	if _, after := cluster.Calls(contenttest.PutChunks); after-before > int64(len(data))/100 {
		t.Errorf("%d of %d bytes were sent again", after-before, len(data))
	}
	if !bytes.Equal(cluster.Contents(object+1), data) {
		t.Error("the copy is wrong")
	}
}

func TestFlush_SendsLostChunksAgain(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	var once sync.Once
	cluster.SetFaults(func(c contenttest.Call) contenttest.Outcome {
		if c == contenttest.Commit {
			once.Do(cluster.Drop)
		}
		return contenttest.Outcome{}
	})
	data := random(3, 5<<20)
	h := e.Open(object, nil, content.Open{})
	stream(ctx, t, h, data)
	must(t, h.Flush(ctx))
	h.Close()
	if !bytes.Equal(cluster.Contents(object), data) {
		t.Error("the content is wrong")
	}
	if n, _ := cluster.Calls(contenttest.Commit); n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
}

func TestWrite_GathersRandomOverwrites(t *testing.T) {
	cluster := contenttest.New()
	want := append(twin(nil), random(4, 8<<20)...)
	cluster.Write(object, 0, want)
	e, ctx := newEngine(t, cluster, content.Options{})
	_, before := cluster.Calls(contenttest.Commit)
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	for i := range 2000 {
		block := random(byte(i), 4096)
		off := i * 7919 % 2048 * 4096
		must(t, h.WriteAt(ctx, block, uint64(off)))
		copy(want[off:], block)
	}
	must(t, h.Sync(ctx))
	if n, _ := cluster.Calls(contenttest.Commit); n > 12 {
		t.Errorf("2,000 overwrites made %d commits", n)
	}
	if _, after := cluster.Calls(contenttest.Commit); after-before > 2000*4096 {
		t.Errorf("%d bytes travelled for %d", after-before, 2000*4096)
	}
	if !bytes.Equal(cluster.Contents(object), want) {
		t.Error("the content is wrong")
	}
}

// TestAppend_KeepsRecordsOfTwoMounts checks that appends from two mounts are all
// there, and overwrites of alternate blocks too.
func TestAppend_KeepsRecordsOfTwoMounts(t *testing.T) {
	cluster := contenttest.New()
	blocks := object + 1
	cluster.Write(blocks, 0, make([]byte, 64<<12))
	var group sync.WaitGroup
	for m := range 2 {
		e, ctx := newEngine(t, cluster, content.Options{StreamBytes: 4096})
		group.Go(func() {
			log, file := e.Open(object, nil, content.Open{}), e.Open(blocks, nil, content.Open{})
			defer log.Close()
			defer file.Close()
			for i := range 500 {
				record := binary.BigEndian.AppendUint64(nil, uint64(m*1000+i))
				if _, err := log.Append(ctx, record); err != nil {
					t.Error(err)
				}
				if n := i*2 + m; n < 64 {
					if err := file.WriteAt(ctx, bytes.Repeat([]byte{byte(n)}, 4096), uint64(n)*4096); err != nil {
						t.Error(err)
					}
				}
			}
			if err := log.Flush(ctx); err != nil {
				t.Error(err)
			}
			if err := file.Flush(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	seen := map[uint64]bool{}
	for b := cluster.Contents(object); len(b) >= 8; b = b[8:] {
		seen[binary.BigEndian.Uint64(b)] = true
	}
	if len(seen) != 1000 || len(cluster.Contents(object)) != 8000 {
		t.Errorf("%d records of %d bytes, want 1,000", len(seen), len(cluster.Contents(object)))
	}
	for i, b := range cluster.Contents(blocks) {
		if b != byte(i/4096) {
			t.Fatalf("block %d is wrong", i/4096)
		}
	}
}

func TestWrite_SmallFileDoesNotWaitForALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 8 << 20
		cluster, slow, data := contenttest.New(), make(chan struct{}), random(1, 2*bound)
		cluster.SetFaults(on(contenttest.PutChunks, contenttest.Outcome{Wait: slow}))
		e := content.New(cluster, content.Options{DirtyBytes: bound})
		large, written := e.Open(object, nil, content.Open{}), make(chan error, 1)
		go func() {
			var err error
			for off := 0; off < len(data) && err == nil; off += 128 << 10 {
				err = large.WriteAt(t.Context(), data[off:off+128<<10], uint64(off))
			}
			written <- err
		}()
		synctest.Wait() // it has filled the budget and waits
		for n := range ids.Object(100) {
			small := e.Open(object+1+n, nil, content.Open{})
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			must(t, small.WriteAt(short, data[:64<<10], 0))
			must(t, small.Flush(short))
			cancel()
			small.Close()
		}
		if len(written) > 0 {
			t.Error("the large file did not wait for room")
		}
		if got := e.Usage().DirtyBytes; got > bound {
			t.Errorf("%d bytes are dirty, the bound is %d", got, bound)
		}
		close(slow)
		must(t, <-written)
		must(t, large.Flush(t.Context()))
		large.Close()
		if got := e.Usage().DirtyBytes; got != 0 {
			t.Errorf("%d bytes are charged for ever", got)
		}
		must(t, e.Close(t.Context()))
	})
}

func TestEngine_CommitsOldDirtyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := contenttest.New()
		e := content.New(cluster, content.Options{FlushAfter: 5 * time.Second})
		h := e.Open(object, nil, content.Open{})
		must(t, h.WriteAt(t.Context(), []byte("old"), 0))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n, _ := cluster.Calls(contenttest.Commit); n != 0 {
			t.Errorf("%d commits after 4 s", n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := string(cluster.Contents(object)); got != "old" {
			t.Errorf("after 7 s the cluster has %q", got)
		}
		h.Close()
		must(t, e.Close(t.Context()))
	})
}

func TestOverlay_ShowsWhatIsDirty(t *testing.T) {
	cluster := contenttest.New()
	cluster.Write(object, 0, []byte("12345"))
	when := time.Unix(2000000000, 5)
	e, ctx := newEngine(t, cluster, content.Options{Wall: func() time.Time { return when }})
	attr := cluster.Attr(object)
	if e.Overlay(attr) {
		t.Error("nothing is open, yet something is dirty")
	}
	h := e.Open(object, nil, content.Open{})
	defer h.Close()
	_, err := h.Append(ctx, []byte("678"))
	must(t, err)
	must(t, h.WriteAt(ctx, []byte("x"), 20))
	if !e.Overlay(attr) || attr.Size != 21 || attr.MtimeNs != when.UnixNano() {
		t.Errorf("size %d, mtime %d", attr.Size, attr.MtimeNs)
	}
	must(t, h.Flush(ctx))
	if e.Overlay(attr) {
		t.Error("all is committed, yet something is dirty")
	}
}

func TestEngine_RefusesWritesOnceClosed(t *testing.T) {
	cluster := contenttest.New()
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, nil, content.Open{})
	must(t, h.WriteAt(ctx, []byte("kept"), 0))
	must(t, e.Close(ctx))
	if got := string(cluster.Contents(object)); got != "kept" {
		t.Errorf("Close left %q", got)
	}
	_ = h.WriteAt(ctx, []byte("late"), 0) // it may be refused here or at the flush
	if err := h.Flush(ctx); !fault.Is(err, fault.Closed) {
		t.Errorf("got %v, want Closed", err)
	}
	h.Close()
	must(t, e.Close(ctx))
}

func TestTruncate_CutBytesDoNotComeBack(t *testing.T) {
	cluster := contenttest.New()
	old := random(6, 100000)
	cluster.Write(object, 0, old)
	e, ctx := newEngine(t, cluster, content.Options{})
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	want := append(twin(nil), old...)
	check := func(step string) {
		t.Helper()
		got := make([]byte, len(want)+1)
		if n, err := h.ReadAt(ctx, got, 0); err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("%s: %d bytes, %v", step, n, err)
		}
	}
	for _, n := range []int{40000, 60000, 20000, 90000} {
		must(t, h.Truncate(ctx, uint64(n)))
		want.resize(n)
		check("after a truncation")
	}
	must(t, h.WriteAt(ctx, []byte("behind"), 120000))
	want.write([]byte("behind"), 120000)
	check("after a write behind the end")
	must(t, h.Flush(ctx))
	check("after the commit")
	if got := cluster.Contents(object); !bytes.Equal(got, want) {
		t.Error("the cluster has other bytes")
	}
}

// TestOpen_NextOneIsToldOfAFailure has a write refused when no handle is left to
// report it to. The next handle gets the error, once.
func TestOpen_NextOneIsToldOfAFailure(t *testing.T) {
	ctx := within(t)
	cluster := contenttest.New()
	cluster.SetFaults(func(call contenttest.Call) contenttest.Outcome {
		if call == contenttest.Commit {
			return contenttest.Outcome{Before: fault.E(fault.NoSpace, "test", "", "")}
		}
		return contenttest.Outcome{}
	})
	engine := content.New(cluster, content.Options{})
	h := engine.Open(object, nil, content.Open{})
	if err := h.WriteAt(ctx, []byte("data"), 0); err != nil {
		t.Fatal(err)
	}
	h.Close() // as a memory map's: nobody waits
	sent(ctx, t, cluster)
	for all := engine.Unsaved(); len(all) != 1 || all[0].Err == nil; all = engine.Unsaved() {
		if ctx.Err() != nil {
			t.Fatal("the refusal does not arrive")
		}
		runtime.Gosched()
	}
	next := engine.Open(object, nil, content.Open{})
	if err := next.Flush(ctx); !fault.Is(err, fault.NoSpace) {
		t.Errorf("who opens next is told %v, want NoSpace", err)
	}
	if err := next.Flush(ctx); err != nil {
		t.Errorf("told a second time: %v", err)
	}
	next.Close()
	third := engine.Open(object, nil, content.Open{})
	if err := third.Flush(ctx); err != nil {
		t.Errorf("another one is told as well: %v", err)
	}
	third.Close()
	if err := engine.Close(ctx); err != nil {
		t.Error(err)
	}
}
