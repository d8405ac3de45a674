package simulation

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// findings are what a run shows: its trace, and the problems, which must not be.
type findings struct {
	trace  *trace
	filled atomic.Bool // a disk was full

	mu       sync.Mutex // guards below
	problems []string
	noted    map[string]bool // kinds of problems that are noted once
}

// mostProblems bounds the problems of one run: what follows the first few is
// their consequence.
const mostProblems = 20

func newFindings(out io.Writer) *findings {
	return &findings{trace: newTrace(out), noted: map[string]bool{}}
}

// since is how much virtual time has passed in the run.
func (f *findings) since() time.Duration { return time.Since(f.trace.began) }

// problem notes something that must not be.
func (f *findings) problem(format string, args ...any) {
	s := fmt.Sprintf("%11.6f ", f.since().Seconds()) + fmt.Sprintf(format, args...)
	f.trace.say("PROBLEM", format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.problems) < mostProblems {
		f.problems = append(f.problems, s)
	}
}

// once notes a problem of a kind the first time.
func (f *findings) once(kind, format string, args ...any) {
	f.mu.Lock()
	again := f.noted[kind]
	f.noted[kind] = true
	f.mu.Unlock()
	if !again {
		f.problem(kind+": "+format, args...)
	}
}

// allowed reports whether a program may be told an error: that there is no
// room, once a disk was full.
func (f *findings) allowed(err error) bool { return f.filled.Load() && fault.Is(err, fault.NoSpace) }
