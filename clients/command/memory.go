package command

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"cartwheel.dev/clients/cartwheel"
)

const (
	// collectorParts is how much of the memory that a mount aims to stay under is
	// the garbage collector's, in fifteenths: it counts no stacks of threads and
	// nothing that C or the kernel keep for the process.
	collectorParts = 11
	// collectorRoom is the room that the collector needs beside what is alive. With
	// less it would run all the time.
	collectorRoom = 32 << 20
	// collectorEvery is how often it is looked at what is alive.
	collectorEvery = time.Second
)

// collectorLimit is what the garbage collector aims for, in bytes: the part of
// the memory option that is its own, but never so little, given what is alive,
// that an idle process would spend its time collecting.
func collectorLimit(memory, alive int64) int64 {
	if memory == 0 {
		memory = cartwheel.DefaultMemory
	}
	return max(memory*collectorParts/15, alive+alive/2+collectorRoom)
}

// startTending begins to tend the collector; end ends that.
func startTending(memory int64) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var tended sync.WaitGroup
	tended.Go(func() { tendCollector(ctx, memory) })
	return func() {
		stop()
		tended.Wait()
	}
}

// tendCollector keeps the garbage collector's limit right until ctx ends.
func tendCollector(ctx context.Context, memory int64) {
	debug.SetMemoryLimit(collectorLimit(memory, 0))
	tick := time.NewTicker(collectorEvery)
	defer tick.Stop()
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			metrics.Read(alive)
			debug.SetMemoryLimit(collectorLimit(memory, int64(alive[0].Value.Uint64())))
		}
	}
}
