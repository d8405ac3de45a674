package operate

import "sync"

// inbox hands events from any goroutine to the loop, which takes all that
// wait at once. Putting never blocks: what is bounded is the number of client
// operations admitted (see Loop.Operate), and peers' frames by the wire.
type inbox struct {
	mu     sync.Mutex // guards the three below
	queue  []event
	closed bool
	held   int // writes of the log under way for which others wait to gather

	wake chan struct{} // holds one token while queue may not be empty
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put adds an event; false means that the loop has ended.
func (b *inbox) put(e event) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	first := len(b.queue) == 0
	b.queue = append(b.queue, e)
	first = first && b.held == 0
	b.mu.Unlock()
	if first {
		b.rouse()
	}
	return true
}

// rouse wakes the loop, whatever is held.
func (b *inbox) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// hold lets events gather until release: what comes while the log is being
// written would wait for the log anyway, and a turn for many costs hardly more
// than a turn for one.
func (b *inbox) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
}

// release ends a hold and adds the event that says so.
func (b *inbox) release(e event) {
	b.mu.Lock()
	b.held--
	if !b.closed {
		b.queue = append(b.queue, e)
	}
	b.mu.Unlock()
	b.rouse()
}

// take returns all waiting events and takes an empty slice to fill next.
func (b *inbox) take(empty []event) []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.queue
	b.queue = empty[:0]
	return full
}

// close refuses further events and returns those still waiting.
func (b *inbox) close() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	rest := b.queue
	b.queue = nil
	return rest
}
