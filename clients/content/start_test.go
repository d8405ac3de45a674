package content_test

import (
	"bytes"
	"context"
	"testing"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/contenttest"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
)

// starter is a cluster that can be asked without waiting.
type starter struct{ *contenttest.Cluster }

func (s starter) StartGet(o ids.Object, part content.Part, _ *trace.Operation, then func([]byte, bool)) bool {
	go func() {
		data, err := s.GetChunks(context.Background(), o, []content.Part{part}, 0)
		then(data, err == nil)
	}()
	return true
}

// begun reads by StartRead; false where nothing began.
func begun(t *testing.T, h *content.Handle, want []byte, off, size int) bool {
	t.Helper()
	done := make(chan struct{})
	began := h.StartRead(nil, size, uint64(off), func(data []byte, ok bool) {
		if !ok || !bytes.Equal(data, want[off:min(off+size, len(want))]) {
			t.Errorf("at %d: %d bytes, %v, or others than were written", off, len(data), ok)
		}
		close(done)
	})
	if began {
		<-done
	}
	return began
}

func TestStartRead_BeginsOnAKnownMap(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 8<<20+100)
	e := content.New(starter{cluster}, content.Options{})
	ctx := within(t)
	defer func() { must(t, e.Close(ctx)) }()
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 4096)
	if begun(t, h, want, 4<<20, 4096) {
		t.Error("a read began with nothing known of the file")
	}
	for _, off := range []uint64{6 << 20, 2 << 20} { // the second wants the map
		_, err := h.ReadAt(ctx, buf, off)
		must(t, err)
	}
	gets, _ := cluster.Calls(contenttest.GetChunks)
	yes, no := 0, 0
	for i := range 400 {
		if begun(t, h, want, i*7919%(8<<8)*4096, 1000+i) {
			yes++
		} else {
			no++
		}
	}
	if more, _ := cluster.Calls(contenttest.GetChunks); yes < 200 || more-gets != yes {
		t.Errorf("%d reads began and %d did not; %d requests", yes, no, more-gets)
	}
	if begun(t, h, want, 1<<20, 4096); !begun(t, h, want, len(want)-50, 4096) {
		t.Error("a read over the end of the file did not begin")
	}
	if begun(t, h, want, len(want)-40, 10) {
		t.Error("a read began that goes on with the one before")
	}
	if h.StartRead(nil, 10, uint64(len(want)), nil) {
		t.Error("a read behind the end began")
	}
}

func TestStartRead_OnlyOfWhatIsNotHere(t *testing.T) {
	cluster := contenttest.New()
	want := big(t, cluster, 40<<20)
	e := content.New(starter{cluster}, content.Options{})
	ctx := within(t)
	defer func() { must(t, e.Close(ctx)) }()
	h := e.Open(object, cluster.Attr(object), content.Open{})
	defer h.Close()
	buf := make([]byte, 128<<10)
	for off := range uint64(16) { // a stream, which is kept
		_, err := h.ReadAt(ctx, buf, off*128<<10)
		must(t, err)
	}
	if !begun(t, h, want, 38<<20, 10) {
		t.Error("a read far from the stream did not begin")
	}
	if begun(t, h, want, 1<<20+64<<10, 10) {
		t.Error("a read of a chunk in the cache began")
	}
	if !begun(t, h, want, 35<<20, 10) {
		t.Error("another one did not begin")
	}
	must(t, h.WriteAt(ctx, []byte("new"), 5))
	if begun(t, h, want, 38<<20, 10) {
		t.Error("a read of a file with dirty bytes began")
	}
}
