package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals returns a context that ends at the first signal to stop, and a channel
// that closes at the second. The function returned gives the signals back.
func Signals(parent context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(parent)
	again := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	end := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Add(1)
	go func() {
		defer waiting.Done()
		for n := 0; ; n++ {
			select {
			case <-end:
				return
			case <-signals:
			}
			cancel()
			if n == 1 {
				close(again)
				return
			}
		}
	}()
	return ctx, again, func() {
		signal.Stop(signals)
		close(end)
		waiting.Wait()
		cancel()
	}
}
