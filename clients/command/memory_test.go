package command

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// TestTheCollectorHasRoom keeps more alive than the memory option allows, and
// expects the collector's limit above it: below, the collector would never rest.
// What is given up brings the limit back.
func TestTheCollectorHasRoom(t *testing.T) {
	const memory = 30 << 20
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	ctx, cancel := context.WithCancel(context.Background())
	var tending sync.WaitGroup
	defer tending.Wait()
	defer cancel()
	tending.Go(func() { tendCollector(ctx, memory) })
	held := make([]byte, 200<<20)
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	await(t, "room above what is alive", func() bool { runtime.GC(); return limit() >= int64(len(held))*5/4 })
	if alive := readAlive(); limit() < alive*5/4 {
		t.Errorf("the limit is %d with %d alive", limit(), alive)
	}
	runtime.KeepAlive(held)
	await(t, "the limit to come down", func() bool { runtime.GC(); return limit() < 150<<20 })
	if collectorLimit(memory, 0) < collectorRoom || collectorLimit(300<<20, 0) != 220<<20 {
		t.Errorf("limits of %d and %d where nothing is alive", collectorLimit(memory, 0), collectorLimit(300<<20, 0))
	}
}

func readAlive() int64 {
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(alive)
	return int64(alive[0].Value.Uint64())
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
