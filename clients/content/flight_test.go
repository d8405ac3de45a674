package content_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// way is a cluster behind a line. It belongs to the bubble that it was made in.
type way struct {
	*contenttest.Cluster
	line  chan struct{} // holds the one batch that is on the line; nil: there is room for all
	takes time.Duration // of a batch on the line; 0: for ever
	then  time.Duration // until it is answered, behind the line
	under chan int      // holds how many are asked for now
	most  int           // that ever were; guarded by under
}

func newWay(takes time.Duration, shared bool) *way {
	w := &way{Cluster: contenttest.New(), takes: takes, under: make(chan int, 1)}
	w.under <- 0
	if shared {
		w.line = make(chan struct{}, 1)
	}
	return w
}

func (w *way) count(more int) {
	n := <-w.under + more
	w.most = max(w.most, n)
	w.under <- n
}

// leave lets the next batch onto the line.
func (w *way) leave() {
	if w.line != nil {
		<-w.line
	}
}

// PutChunks implements content.Remote.
func (w *way) PutChunks(ctx context.Context, o ids.Object, addresses []chunk.Address, sizes []uint32, body [][]byte) error {
	w.count(1)
	defer w.count(-1)
	if w.line != nil {
		select {
		case w.line <- struct{}{}:
		case <-ctx.Done():
			return fault.Wrap(fault.TimedOut, "test", "", ctx.Err())
		}
	}
	var over <-chan time.Time
	if w.takes > 0 {
		over = time.After(w.takes)
	}
	select {
	case <-over:
		w.leave()
		<-time.After(w.then)
		return w.Cluster.PutChunks(ctx, o, addresses, sizes, body)
	case <-ctx.Done():
		w.leave()
		return fault.Wrap(fault.TimedOut, "test", "", ctx.Err())
	}
}

// upload writes a large file over a way, and returns how long its flush took.
func upload(t *testing.T, w *way, want error) (took time.Duration) {
	t.Helper()
	const size = 24 << 20
	e := content.New(w, content.Options{CommitTimeout: time.Minute, FlushAfter: time.Hour, Soft: want != nil})
	h := e.Open(object, nil, content.Open{})
	data := random(7, size)
	stream(t.Context(), t, h, data)
	began := time.Now()
	err := h.Flush(t.Context())
	took = time.Since(began)
	if (err == nil) != (want == nil) || err != nil && fault.KindOf(err) != fault.KindOf(want) {
		t.Errorf("got %v after %v, want %v", err, took, want)
	}
	if err == nil && !bytes.Equal(w.Contents(object), data) {
		t.Error("the cluster has something else")
	}
	h.Close()
	_ = e.Close(t.Context()) // what failed was told
	return took
}

// TestUpload_LargeFileOverASlowPath needs 17 s for a batch, as over a line of 1
// Mbit/s. The whole file takes minutes, and each batch may take one.
func TestUpload_LargeFileOverASlowPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWay(17*time.Second, true)
		if took := upload(t, w, nil); took < 3*time.Minute {
			t.Errorf("it took %v: this way is not slow", took)
		}
	})
}

// TestUpload_KeepsASlowPathBusy needs 3 s for a batch on the line, and as long until
// it is passed on and answered: with one batch under way the line would be idle half
// of the time.
func TestUpload_KeepsASlowPathBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWay(3*time.Second, true)
		w.then = 3 * time.Second
		if took := upload(t, w, nil); took > 45*time.Second {
			t.Errorf("it took %v for 12 batches", took)
		}
	})
}

func TestUpload_FillsALongPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWay(150*time.Millisecond, false)
		upload(t, w, nil)
		if w.most < 6 {
			t.Errorf("at most %d batches were under way at once", w.most)
		}
	})
}

func TestUpload_ReportsABrokenPathSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := upload(t, newWay(0, false), fault.E(fault.TimedOut, "", "", ""))
		if took > 3*time.Minute {
			t.Errorf("it was told after %v", took)
		}
	})
}
