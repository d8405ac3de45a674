package conformance

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	geoconfig "cartwheel.dev/geo-config"
)

// Result is what one case came to.
type Result struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took_ns"`
	// Failures says what was wrong; none: the claim holds.
	Failures []string `json:"failures,omitempty"`
}

// Check runs the suite on stores that open makes, each new and empty, one case
// after the other. It stops early only where ctx ends.
func Check(ctx context.Context, open func(context.Context) (geoconfig.Store, error)) []Result {
	var out []Result
	for _, c := range Cases() {
		if ctx.Err() != nil {
			break
		}
		out = append(out, check(ctx, c, open))
	}
	return out
}

func check(ctx context.Context, c Case, open func(context.Context) (geoconfig.Store, error)) Result {
	start := time.Now()
	s, err := open(ctx)
	if err != nil {
		return Result{Name: c.Name, Took: time.Since(start), Failures: []string{"opening a store: " + err.Error()}}
	}
	defer s.Close()
	r := new(recorder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, r, s)
	}()
	<-done
	return Result{Name: c.Name, Took: time.Since(start), Failures: r.failed()}
}

// recorder is the T of a check outside of tests.
type recorder struct {
	mu       sync.Mutex // guards failures
	failures []string
}

var _ T = (*recorder)(nil)

// Helper has no effect: a recorder reports no lines.
func (*recorder) Helper() {}

// Log drops what a case says without failing.
func (*recorder) Log(...any) {}

// Logf drops what a case says without failing.
func (*recorder) Logf(string, ...any) {}

// Error notes a failure.
func (r *recorder) Error(args ...any) { r.note(strings.TrimSpace(fmt.Sprintln(args...))) }

// Errorf notes a failure.
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }

// Fatal notes a failure and ends the case.
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

// Fatalf notes a failure and ends the case.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

func (r *recorder) failed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}
