package command

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	quietFor   = time.Second      // nothing is said of what takes less
	sayAgainIn = 10 * time.Second // and then this often
)

// progress says on standard error what is going on.
func (e *env) progress(format string, args ...any) func() {
	return Progress(e.stdio.Err, fmt.Sprintf(format, args...))
}

// Progress says what is going on, once it has taken a second and every ten
// seconds after. The function returned ends it.
func Progress(w io.Writer, what string) func() {
	return progressOf(w, func() string { return what })
}

// progressOf is Progress with words that change.
func progressOf(w io.Writer, what func() string) func() {
	end := make(chan struct{})
	var saying sync.WaitGroup
	saying.Add(1)
	go func() {
		defer saying.Done()
		start := time.Now()
		wait := time.NewTimer(quietFor)
		defer wait.Stop()
		for {
			select {
			case <-end:
				return
			case <-wait.C:
				fmt.Fprintf(w, "%s (%v)\n", what(), time.Since(start).Round(time.Second))
				wait.Reset(sayAgainIn)
			}
		}
	}()
	var once sync.Once
	return func() { once.Do(func() { close(end) }); saying.Wait() }
}
