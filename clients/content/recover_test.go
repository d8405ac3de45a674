package content_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
)

// crashed plays writes on a mount whose process dies before or while they are
// committed, and returns what the next start finds.
func crashed(t *testing.T, cluster *contenttest.Cluster, lost bool, play func(context.Context, *content.Handle)) (*writelog.Log, content.Leftover) {
	t.Helper()
	ctx := within(t)
	dir := t.TempDir()
	log, _, err := writelog.Open(dir, writelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	died := false
	var mu sync.Mutex
	cluster.SetFaults(func(call contenttest.Call) contenttest.Outcome {
		mu.Lock()
		defer mu.Unlock()
		dead := fault.E(fault.Canceled, "test", "", "the process died")
		switch {
		case died:
			return contenttest.Outcome{Before: dead}
		case call != contenttest.Commit:
			return contenttest.Outcome{}
		}
		if died = true; lost {
			return contenttest.Outcome{After: dead}
		}
		return contenttest.Outcome{Before: dead}
	})
	engine := content.New(cluster, content.Options{Journal: log})
	h := engine.Open(object, cluster.Attr(object), content.Open{})
	play(ctx, h)
	h.Close()
	sent(ctx, t, cluster)
	over, end := context.WithCancel(ctx)
	end()
	_ = engine.Close(over) // fails: no program hears of it
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	cluster.SetFaults(nil)
	log, left, err := writelog.Open(dir, writelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() }) // the directory goes
	if len(left) != 1 {
		t.Fatalf("%d objects are left over, want 1", len(left))
	}
	return log, left[0]
}

// sent waits until a commit was sent.
func sent(ctx context.Context, t interface {
	Helper()
	Fatal(...any)
}, cluster *contenttest.Cluster) {
	t.Helper()
	for {
		if n, _ := cluster.Calls(contenttest.Commit); n > 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("nothing is committed")
		}
		runtime.Gosched()
	}
}

func TestRecover_CommitsWhatACrashLeft(t *testing.T) {
	base := bytes.Repeat([]byte("base "), 20000)
	patch := bytes.Repeat([]byte("PATCH"), 3000)
	overwrite := func(ctx context.Context, h *content.Handle) {
		if err := h.WriteAt(ctx, patch, 5000); err != nil {
			t.Error(err)
		}
	}
	tests := []struct {
		name   string
		lost   bool // the commit was run, its answer lost
		play   func(context.Context, *content.Handle)
		others bool // another client wrote meanwhile
		want   func(twin) twin
		parks  bool
	}{
		{"an overwrite never sent", false, overwrite, false, func(w twin) twin { w.write(patch, 5000); return w }, false},
		{"an overwrite that was run", true, overwrite, false, func(w twin) twin { w.write(patch, 5000); return w }, false},
		{"an overwrite and another's", false, overwrite, true, nil, true},
		{"an append never sent", false, func(ctx context.Context, h *content.Handle) {
			if _, err := h.Append(ctx, patch); err != nil {
				t.Error(err)
			}
		}, false, func(w twin) twin { w.write(patch, len(w)); return w }, false},
		{"an append that was run", true, func(ctx context.Context, h *content.Handle) {
			if _, err := h.Append(ctx, patch); err != nil {
				t.Error(err)
			}
		}, false, func(w twin) twin { w.write(patch, len(w)); return w }, false},
		{"a truncation and a hole", false, func(ctx context.Context, h *content.Handle) {
			if err := h.Truncate(ctx, 50000); err != nil {
				t.Error(err)
			}
			if err := h.Allocate(ctx, content.PunchHole|content.KeepSize, 100, 40000); err != nil {
				t.Error(err)
			}
			if err := h.Allocate(ctx, 0, 0, 60000); err != nil {
				t.Error(err)
			}
		}, false, func(w twin) twin { w.resize(50000); w.zero(100, 40100); w.resize(60000); return w }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := within(t)
			cluster := contenttest.New()
			cluster.Write(object, 0, base)
			log, left := crashed(t, cluster, tt.lost, tt.play)
			want := append(twin(nil), base...)
			if tt.others {
				cluster.Write(object, 6000, []byte("another client's"))
				want.write([]byte("another client's"), 6000)
			}
			conflict := append(twin(nil), want...)
			if tt.want != nil {
				want = tt.want(want)
			} else {
				conflict.write(patch, 5000)
			}
			engine := content.New(cluster, content.Options{Journal: log})
			defer engine.Close(ctx)
			parked := false
			err := engine.Recover(ctx, left, content.Recovery{Park: func(ctx context.Context, p *content.Parked) error {
				parked = true
				got := make([]byte, p.Size())
				if _, err := p.ReadAt(ctx, got, 0); err != nil || !bytes.Equal(got, conflict) {
					t.Errorf("the conflict copy is wrong: %d bytes, %v", len(got), err)
				}
				return nil
			}})
			if err != nil || parked != tt.parks {
				t.Fatalf("got %v, parked %v, want %v", err, parked, tt.parks)
			}
			if got := cluster.Contents(object); !bytes.Equal(got, want) {
				t.Errorf("the cluster has %d bytes, want %d others", len(got), len(want))
			}
			log.Forget(object, left.Writes[len(left.Writes)-1].Number)
			if err := engine.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRecover_ParksOnlyWhatIsRefused(t *testing.T) {
	for kind, parks := range map[fault.Kind]bool{fault.Permission: true, fault.NoSpace: false, fault.Unreachable: false} {
		ctx := within(t)
		cluster := contenttest.New()
		_, left := crashed(t, cluster, false, func(ctx context.Context, h *content.Handle) {
			if err := h.WriteAt(ctx, []byte("data"), 0); err != nil {
				t.Error(err)
			}
		})
		cluster.SetFaults(func(call contenttest.Call) contenttest.Outcome {
			if call == contenttest.Commit {
				return contenttest.Outcome{Before: fault.E(kind, "test", "", "")}
			}
			return contenttest.Outcome{}
		})
		engine := content.New(cluster, content.Options{})
		parked := false
		before, _ := cluster.Calls(contenttest.Commit)
		ctx, stop := context.WithCancel(ctx)
		go func() { // the mount ends while the commit does not get through
			for n := before; n == before && ctx.Err() == nil; n, _ = cluster.Calls(contenttest.Commit) {
				runtime.Gosched()
			}
			if !parks {
				stop()
			}
		}()
		defer stop()
		err := engine.Recover(ctx, left, content.Recovery{Park: func(context.Context, *content.Parked) error {
			parked = true
			return nil
		}})
		if parked != parks || (err == nil) != parks {
			t.Errorf("%v: parked %v, %v", kind, parked, err)
		}
		_ = engine.Close(ctx)
	}
}

// TestRecover_WaitsForRoom has the disk full when a mount begins again. It sends
// what a crash left until there is room, and keeps no conflict copy.
func TestRecover_WaitsForRoom(t *testing.T) {
	ctx := within(t)
	cluster := contenttest.New()
	want := []byte("data")
	_, left := crashed(t, cluster, false, func(ctx context.Context, h *content.Handle) {
		if err := h.WriteAt(ctx, want, 0); err != nil {
			t.Error(err)
		}
	})
	var tries atomic.Int32
	cluster.SetFaults(func(call contenttest.Call) contenttest.Outcome {
		if call == contenttest.Commit && tries.Add(1) <= 3 {
			return contenttest.Outcome{Before: fault.E(fault.NoSpace, "test", "", "")}
		}
		return contenttest.Outcome{}
	})
	engine := content.New(cluster, content.Options{RetryAfter: time.Millisecond})
	err := engine.Recover(ctx, left, content.Recovery{Park: func(context.Context, *content.Parked) error {
		t.Error("it was kept as a conflict copy")
		return nil
	}})
	if got := cluster.Contents(object); err != nil || !bytes.Equal(got, want) || tries.Load() != 4 {
		t.Errorf("after %d attempts the cluster has %q, want %q, %v", tries.Load(), got, want, err)
	}
	if err := engine.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestJournal_IsEmptyOnceAllIsCommitted(t *testing.T) {
	ctx := within(t)
	dir := t.TempDir()
	log, _, err := writelog.Open(dir, writelog.Options{SegmentBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	engine := content.New(contenttest.New(), content.Options{Journal: log, StreamBytes: 1 << 20})
	h := engine.Open(object, nil, content.Open{})
	piece := make([]byte, 128<<10)
	for i := range 80 {
		piece[0] = byte(i)
		if err := h.WriteAt(ctx, piece, uint64(i*len(piece))); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if got := log.Bytes(); got > 8<<20 {
		t.Errorf("all is committed, but the journal has %d bytes", got)
	}
	h.Close()
	_ = engine.Close(ctx)
	_ = log.Close()
	log, left, err := writelog.Open(dir, writelog.Options{})
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %d objects, %v", len(left), err)
	}
	_ = log.Close()
}

// copied copies a journal as a crash leaves it. Where it removes a file just
// then, it is copied anew.
func copied(t *testing.T, dir string) string {
	t.Helper()
	for {
		after := t.TempDir()
		err := os.CopyFS(after, os.DirFS(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		return after
	}
}

// TestRecover_LosesNothingAcknowledged kills the client at any moment of a
// random play and recovers from a copy of its journal.
func TestRecover_LosesNothingAcknowledged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := within(rt)
		cluster, rnd := contenttest.New(), rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		cluster.Write(object, 0, random(1, 300000))
		want := append(twin(nil), random(1, 300000)...)
		dir := t.TempDir()
		log := openLog(rt, dir)
		options := content.Options{Journal: log, StreamBytes: 400 << 10}
		engine := content.New(cluster, options)
		h := engine.Open(object, cluster.Attr(object), content.Open{})
		appends, stream := rapid.Bool().Draw(rt, "appends"), rapid.Bool().Draw(rt, "stream")
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			data := random(byte(rnd.IntN(250)), 1+rnd.IntN(200000))
			switch k := rnd.IntN(12); {
			case k == 0:
				must(t, h.Flush(ctx))
			case k == 1:
				n := rnd.IntN(len(want) + 50000)
				must(t, h.Truncate(ctx, uint64(n)))
				want.resize(n)
			case appends:
				_, err := h.Append(ctx, data)
				must(t, err)
				want.write(data, len(want))
			default:
				off := len(want)
				if !stream {
					off = rnd.IntN(off + 1)
				}
				must(t, h.WriteAt(ctx, data, uint64(off)))
				want.write(data, off)
			}
		}
		if rapid.Bool().Draw(rt, "later") { // what is on its way arrives first
			for n := 0; n < 200; n++ {
				runtime.Gosched()
			}
		}
		// The process dies: its commits end here, in the middle of whatever
		// they were at, and its files stay as they are.
		cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{Wait: make(chan struct{})}))
		after := copied(t, dir)
		h.Close()
		over, end := context.WithCancel(ctx)
		end()
		_ = engine.Close(over) // it fails, of course
		_ = log.Close()
		cluster.SetFaults(nil)
		log, left, err := writelog.Open(after, writelog.Options{})
		must(t, err)
		options.Journal = log
		engine = content.New(cluster, options)
		parked := false
		for _, l := range left {
			// The crash may have come between two commits that the journal had
			// begun: then it cannot tell who made the newer version, and what it
			// parks must be the whole file.
			err := engine.Recover(ctx, l, content.Recovery{Park: func(ctx context.Context, p *content.Parked) error {
				parked = true
				got := make([]byte, p.Size())
				if _, err := p.ReadAt(ctx, got, 0); err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				if !bytes.Equal(got, want) {
					rt.Fatalf("parked %d bytes, want %d others; known %d, sent %v, now %d", len(got), len(want), p.Known, p.Sent, cluster.Attr(object).Version)
				}
				return nil
			}})
			must(t, err)
			log.Forget(l.Object, l.Writes[len(l.Writes)-1].Number)
		}
		must(t, engine.Close(ctx))
		must(t, log.Close())
		if got := cluster.Contents(object); !parked && !bytes.Equal(got, want) {
			rt.Fatalf("recovered %d bytes, want %d others", len(got), len(want))
		}
	})
}

// TestRecover_FailedWriteDoesNotComeBack gives a first write up, has
// a second one committed, and starts again.
func TestRecover_FailedWriteDoesNotComeBack(t *testing.T) {
	ctx := within(t)
	cluster, dir := contenttest.New(), t.TempDir()
	log, _, err := writelog.Open(dir, writelog.Options{})
	must(t, err)
	engine := content.New(cluster, content.Options{Journal: log, Soft: true})
	h := engine.Open(object, cluster.Attr(object), content.Open{})
	cluster.SetFaults(on(contenttest.Commit, contenttest.Outcome{Before: fault.E(fault.TimedOut, "test", "", "")}))
	must(t, h.WriteAt(ctx, []byte("old"), 0))
	if err := h.Flush(ctx); !fault.Is(err, fault.TimedOut) {
		t.Fatalf("the first write: got %v, want TimedOut", err)
	}
	cluster.SetFaults(nil)
	must(t, h.WriteAt(ctx, []byte("new"), 0))
	must(t, h.Flush(ctx))
	h.Close()
	must(t, engine.Close(ctx))
	must(t, log.Close())
	log, left, err := writelog.Open(dir, writelog.Options{})
	must(t, err)
	engine = content.New(cluster, content.Options{Journal: log})
	for _, l := range left {
		must(t, engine.Recover(ctx, l, content.Recovery{Park: func(context.Context, *content.Parked) error { return nil }}))
	}
	must(t, engine.Close(ctx))
	must(t, log.Close())
	if got := string(cluster.Contents(object)); got != "new" {
		t.Errorf("after the next start the file reads %q, want %q", got, "new")
	}
}
