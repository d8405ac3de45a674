package content

import (
	"context"
	"testing"
	"time"

	"cartwheel.dev/node/protocol/pb"
)

// broken is a write journal with a bug.
type broken struct{ Journal }

func (broken) Write(Written) (uint64, error) { panic("a bug") }

func (broken) Sync() error { return nil }

// TestFile_StaysUsableAfterAPanic meets a bug in a request on a file, in each of
// the places where one is answered under the file's mutex. The mount recovers
// from it, so that the request fails. The next one on the file must be answered.
func TestFile_StaysUsableAfterAPanic(t *testing.T) {
	ctx := context.Background()
	cases := map[string]func(*Handle){
		"read":  func(h *Handle) { _, _ = h.ReadAt(ctx, make([]byte, 4), 0) },
		"seek":  func(h *Handle) { _, _ = h.SeekData(ctx, 0) },
		"size":  func(h *Handle) { _, _ = h.Size(ctx) },
		"write": func(h *Handle) { h.file.layers = nil; _ = h.WriteAt(ctx, []byte("y"), 0) },
		"list":  func(h *Handle) { h.file.unsaved() },
	}
	for name, meet := range cases {
		t.Run(name, func(t *testing.T) {
			e := New(nil, Options{Journal: broken{}, Wall: time.Now, FlushAfter: time.Hour})
			h := e.Open(7, &pb.Attr{Object: 7, Version: 1, Size: 4, Content: &pb.Content{Inline: []byte("abcd")}}, Open{})
			f := h.file
			f.layers = []*layer{nil}
			if !panics(func() { meet(h) }) {
				t.Fatal("the bug was not met")
			}
			if !f.mu.TryLock() {
				t.Fatal("the file's mutex is held for good")
			}
			f.layers = nil
			f.mu.Unlock()
			got := make([]byte, 4)
			if n, err := h.ReadAt(ctx, got, 0); err != nil || string(got[:n]) != "abcd" {
				t.Errorf("the next read brings %q, %v", got[:n], err)
			}
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// panics reports whether fn does.
func panics(fn func()) (did bool) {
	defer func() { did = recover() != nil }()
	fn()
	return false
}
