package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// trace is what happened in a run, for people: in the order in which it
// happened, and within one instant, whose order Go chooses, in that of the
// alphabet. Its sum tells whether two runs were the same.
type trace struct {
	began time.Time
	out   io.Writer // nil: nobody reads it now

	mu    sync.Mutex // guards below
	at    time.Duration
	now   []string // what happened at this instant
	sum   uint64
	lines int
}

func newTrace(out io.Writer) *trace {
	return &trace{began: time.Now(), out: out, sum: 14695981039346656037}
}

// say notes something.
func (t *trace) say(who, format string, args ...any) {
	at := time.Since(t.began)
	line := fmt.Sprintf("%11.6f %-8s %s\n", at.Seconds(), who, fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if at != t.at {
		t.flushLocked()
	}
	t.at, t.now = at, append(t.now, line)
}

// flush tells what happened last, and returns the sum of all lines.
func (t *trace) flush() (sum uint64, lines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushLocked()
	return t.sum, t.lines
}

// flushLocked tells what happened at the last instant. t.mu is held.
func (t *trace) flushLocked() {
	sort.Strings(t.now)
	for _, line := range t.now {
		h := fnv.New64a()
		_, _ = io.WriteString(h, line) // a hash takes everything
		t.sum = t.sum*1099511628211 ^ h.Sum64()
		t.lines++
		if t.out != nil {
			_, _ = io.WriteString(t.out, line) // the run goes on without its reader
		}
	}
	t.now = t.now[:0]
}

// handler makes the log of a node or client part of the trace.
type handler struct {
	t     *trace
	who   string
	attrs string
	least slog.Level
	over  chan struct{} // closed when it has no more to say; nil: never
	// wrong hears of what no fault explains; nil: nobody does.
	wrong func(format string, args ...any)
}

// Enabled implements slog.Handler.
func (h handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.least }

// Handle implements slog.Handler.
func (h handler) Handle(_ context.Context, r slog.Record) error {
	if h.over != nil && ended(h.over) {
		return nil
	}
	var b strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		// Copies are compared with their sources, and begin anew where they differ.
		if err, ok := a.Value.Any().(error); ok && h.wrong != nil && r.Message == "a slice's state could not be copied" && fault.Is(err, fault.Corrupt) {
			h.wrong("COPY: %s: %v", h.who, err)
		}
		return true
	})
	h.t.say(h.who, "%s%s%s", r.Message, h.attrs, b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key != "node" { // who says it
			h.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
	}
	return h
}

// WithGroup implements slog.Handler; nothing here has groups.
func (h handler) WithGroup(string) slog.Handler { return h }
