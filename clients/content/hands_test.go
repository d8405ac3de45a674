package content

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

func TestHands_AreReusedAndFewStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHands()
		var group sync.WaitGroup
		ran := 0
		for range 5 {
			h.start(ctx, &group, func() { ran++ })
			synctest.Wait()
			if h.waiting != 1 {
				t.Fatalf("%d goroutines wait after one function at a time, want 1", h.waiting)
			}
		}
		release := make(chan struct{})
		for range 2 * keepHands {
			h.start(ctx, &group, func() { <-release })
		}
		synctest.Wait()
		if h.waiting != 0 {
			t.Errorf("%d goroutines wait while more is under way than are kept", h.waiting)
		}
		close(release)
		synctest.Wait()
		if ran != 5 || h.waiting != keepHands {
			t.Errorf("%d functions ran and %d goroutines wait, want 5 and %d", ran, h.waiting, keepHands)
		}
		cancel()
		group.Wait() // they end
	})
}

// deep needs the stack that a commit does, roughly.
//
//go:noinline
func deep(n int) byte {
	var frame [512]byte
	frame[n] = byte(n)
	if n == 0 {
		return frame[0]
	}
	return deep(n-1) + frame[n]
}

func BenchmarkStart(b *testing.B) {
	for _, again := range []bool{false, true} {
		name := "anew"
		if again {
			name = "again"
		}
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			h := newHands()
			var group sync.WaitGroup
			done := make(chan byte)
			for b.Loop() {
				fn := func() { done <- deep(20) }
				if again {
					h.start(ctx, &group, fn)
				} else {
					group.Go(fn)
				}
				<-done
			}
			cancel()
			group.Wait()
		})
	}
}
