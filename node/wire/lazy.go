package wire

import (
	"context"
	"time"
)

// lazy is the Context of a request, made when somebody first waits for its end
// or derives another from it: most handlers are done before.
type lazy struct {
	r    *Request
	pool *workers // whose worker runs the handler
}

var _ context.Context = lazy{}

// Deadline implements context.Context.
func (l lazy) Deadline() (time.Time, bool) { return l.r.Deadline() }

// Done implements context.Context.
func (l lazy) Done() <-chan struct{} { return l.r.Context().Done() }

// Value implements context.Context.
func (l lazy) Value(key any) any {
	if key == (poolKey{}) {
		return l.pool
	}
	return l.r.Context().Value(key)
}

// Err implements context.Context.
func (l lazy) Err() error {
	l.r.mu.Lock()
	fresh := l.r.ctx == nil && !l.r.answered
	l.r.mu.Unlock()
	if fresh && !l.r.Canceled() {
		return nil
	}
	return l.r.Context().Err() // it stays what it is now
}
