package collector

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollector_HasRoomAboveWhatIsAlive keeps more alive than the process aims
// for, and expects the limit above it. A lower limit would never let the
// collector rest. The limit falls once the memory is free again.
func TestCollector_HasRoomAboveWhatIsAlive(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	defer Start(30 << 20)()
	held := make([]byte, 200<<20)
	now := func() int64 { return debug.SetMemoryLimit(-1) }
	await(t, "room above what is alive", func() bool { runtime.GC(); return now() >= int64(len(held))*5/4 })
	runtime.KeepAlive(held)
	await(t, "the limit to come down", func() bool { runtime.GC(); return now() < 150<<20 })
}

func TestLimit_IsTheAimWhereThatIsEnough(t *testing.T) {
	if got := limit(220<<20, 50<<20, 10<<20); got != 220<<20 {
		t.Errorf("got %d, want what is aimed for", got)
	}
	if got := limit(220<<20, 200<<20, 100<<20); got != 532<<20 {
		t.Errorf("got %d, want room beside what is alive and the stacks", got)
	}
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-limit.C:
			t.Fatalf("waiting for %s", what)
		case <-tick.C:
		}
	}
}
