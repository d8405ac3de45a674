package wire

import (
	"context"
	"sync"
)

// work is a request for a handler that may block.
type work struct {
	request *Request
	handler func(context.Context, *Request)
}

// workers is a bounded pool of goroutines that are kept once started.
type workers struct {
	limit   int
	backlog int
	wg      *sync.WaitGroup

	mu      sync.Mutex // guards below
	waiting *sync.Cond
	queue   []work
	next    int // of queue
	started int
	busy    int // running a handler
	idle    int
	closed  bool
}

func newWorkers(limit, backlog int, wg *sync.WaitGroup) *workers {
	w := &workers{limit: limit, backlog: backlog, wg: wg}
	w.waiting = sync.NewCond(&w.mu)
	return w
}

// submit queues work; false means that the backlog is full or the pool closed.
func (w *workers) submit(k work) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := len(w.queue) - w.next
	if w.closed || waiting+w.busy >= w.limit+w.backlog {
		return false
	}
	if w.next > 0 && len(w.queue) == cap(w.queue) {
		n := copy(w.queue, w.queue[w.next:])
		clear(w.queue[n:])
		w.queue, w.next = w.queue[:n], 0
	}
	w.queue = append(w.queue, k)
	if w.idle > waiting {
		w.waiting.Signal()
	} else if w.started < w.limit {
		w.started++
		w.wg.Add(1)
		go w.run()
	}
	return true
}

func (w *workers) run() {
	defer w.wg.Done()
	for {
		w.mu.Lock()
		for w.next == len(w.queue) && !w.closed {
			w.queue, w.next = w.queue[:0], 0
			w.idle++
			w.waiting.Wait()
			w.idle--
		}
		if w.next == len(w.queue) {
			w.mu.Unlock()
			return
		}
		k := w.queue[w.next]
		w.queue[w.next] = work{}
		w.next++
		w.busy++
		w.mu.Unlock()
		k.serve()
		w.mu.Lock()
		w.busy--
		w.mu.Unlock()
	}
}

// close lets the workers end when the backlog is done; its requests' contexts
// are cancelled by then.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.waiting.Broadcast()
}
