package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLifetime_KeepsTheFirstFailure(t *testing.T) {
	var l lifetime
	l.init()
	if !l.canPassOn() {
		t.Error("a node that begins cannot hand anything over")
	}
	first := errors.New("first")
	if !l.fail(first) || l.fail(errors.New("second")) {
		t.Error("got a second failure noted, want the first alone")
	}
	if got := <-l.failure; !errors.Is(got, first) || l.canPassOn() {
		t.Errorf("got %v, want the first failure, and nothing to be handed over", got)
	}
}

func TestLifetime_ClosesOnceForAll(t *testing.T) {
	var runs atomic.Int32
	want := errors.New("not closed")
	synctest.Test(t, func(t *testing.T) {
		var l lifetime
		l.init()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got := l.close(func() error {
					time.Sleep(time.Minute) // the others' wait must not stop the time
					runs.Add(1)
					return want
				})
				if !errors.Is(got, want) || runs.Load() != 1 {
					t.Errorf("got %v after %d runs, want %v after one", got, runs.Load(), want)
				}
			})
		}
		all.Wait()
		l.end()
	})
	if runs.Load() != 1 {
		t.Errorf("closed %d times, want once", runs.Load())
	}
}

func TestLifetime_StartsNothingAfterItsStop(t *testing.T) {
	var l lifetime
	l.init()
	ended := false
	l.spawn(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	l.stop()
	l.spawn(func(context.Context) { t.Error("a goroutine was started after the stop") })
	if l.wait(); !ended {
		t.Error("the wait ended before the goroutine")
	}
}
