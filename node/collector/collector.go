// Package collector keeps the garbage collector's limit of this process where
// it is of use: at what the process aims for, but never so near to what is
// alive that the process would spend its time collecting.
package collector

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// room is what the collector needs beside as much again as is alive.
	room = 32 << 20
	// every is how often it is looked at what is alive.
	every = time.Second
)

// limit is what the collector aims for, in bytes, given what a process aims
// for, how much of its heap is alive, and its threads' stacks, which the limit
// counts too.
func limit(aim, alive, stacks int64) int64 {
	return max(aim, 2*alive+stacks+room)
}

// Start begins to tend the limit of a process that aims for so many bytes; end
// ends that.
func Start(aim int64) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var tended sync.WaitGroup
	tended.Go(func() { tend(ctx, aim) })
	return func() {
		stop()
		tended.Wait()
	}
}

// tend keeps the limit right until ctx ends.
func tend(ctx context.Context, aim int64) {
	debug.SetMemoryLimit(limit(aim, 0, 0))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			debug.SetMemoryLimit(limit(aim, read("/gc/heap/live:bytes"), read("/memory/classes/heap/stacks:bytes")))
		}
	}
}

func read(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
