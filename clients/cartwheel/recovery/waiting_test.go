package recovery

import (
	"context"
	"testing"

	"cartwheel.dev/clients/content"
)

func TestWaiting_EndsWhenItIsDecided(t *testing.T) {
	var w waiting
	if err := w.await(t.Context(), 7); err != nil {
		t.Errorf("before anything was left: %v", err)
	}
	w.begin([]content.Leftover{{Object: 7}, {Object: 8}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.await(over, 7); err == nil {
		t.Error("the wait ended before it was decided")
	}
	if err := w.await(over, 9); err != nil {
		t.Errorf("another object: %v", err)
	}
	w.decided(7)
	w.decided(7)
	if err := w.await(over, 7); err != nil {
		t.Errorf("after it was decided: %v", err)
	}
	if list := w.list(); len(list) != 1 || list[0] != 8 || w.count.Load() != 1 {
		t.Errorf("got %v and %d, want only object 8", list, w.count.Load())
	}
	go w.decided(8)
	w.awaitAll(t.Context())
	if n := w.count.Load(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
