package wire

import "sync"

// workers is a bounded pool of goroutines that serve requests of type T. It keeps
// a goroutine once started. A handler that waits gives its worker back (Yield), so
// the bound is on handlers that run.
type workers[T any] struct {
	serve   func(T, *workers[T])
	limit   int // of goroutines that do not wait
	backlog int
	most    int // of handlers that wait
	wg      *sync.WaitGroup

	mu      sync.Mutex // guards below
	ready   *sync.Cond
	queue   []T
	next    int // of queue
	started int // goroutines, without those whose handler waits
	busy    int // of these, running a handler
	idle    int
	waiting int // handlers that wait
	closed  bool
}

func newWorkers[T any](limit, backlog, most int, wg *sync.WaitGroup, serve func(T, *workers[T])) *workers[T] {
	w := &workers[T]{serve: serve, limit: limit, backlog: backlog, most: most, wg: wg}
	w.ready = sync.NewCond(&w.mu)
	return w
}

// submit queues work; false means that the backlog is full or the pool closed.
func (w *workers[T]) submit(k T) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	queued := len(w.queue) - w.next
	if w.closed || queued+w.busy >= w.limit+w.backlog {
		return false
	}
	if w.next > 0 && len(w.queue) == cap(w.queue) {
		n := copy(w.queue, w.queue[w.next:])
		clear(w.queue[n:])
		w.queue, w.next = w.queue[:n], 0
	}
	w.queue = append(w.queue, k)
	if w.idle > queued {
		w.ready.Signal()
	} else {
		w.growLocked()
	}
	return true
}

// growLocked starts a goroutine if the pool may have another; the mutex is held.
func (w *workers[T]) growLocked() {
	if w.started >= w.limit {
		return
	}
	w.started++
	w.wg.Add(1)
	go w.run()
}

func (w *workers[T]) run() {
	defer w.wg.Done()
	for {
		w.mu.Lock()
		for w.next == len(w.queue) && !w.closed && w.started <= w.limit {
			w.queue, w.next = w.queue[:0], 0
			w.idle++
			w.ready.Wait()
			w.idle--
		}
		if w.next == len(w.queue) || w.started > w.limit {
			// Handlers that waited came back and more goroutines run than may,
			// or the pool is closed.
			w.started--
			if w.next < len(w.queue) && w.idle > 0 {
				w.ready.Signal() // the signal was meant for the queue
			}
			w.mu.Unlock()
			return
		}
		k := w.queue[w.next]
		var none T
		w.queue[w.next] = none
		w.next++
		w.busy++
		w.mu.Unlock()
		w.serve(k, w)
		w.mu.Lock()
		w.busy--
		w.mu.Unlock()
	}
}

// yield takes a handler's goroutine out of the pool. False: too many wait.
func (w *workers[T]) yield() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting >= w.most {
		return false
	}
	w.waiting++
	w.started--
	w.busy--
	if len(w.queue)-w.next > w.idle {
		w.growLocked()
	}
	return true
}

// resume takes it back. If it is one too many then, the first goroutine that is
// done ends.
func (w *workers[T]) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
	w.started++
	w.busy++
}

// close lets the workers end when the backlog is done; its requests' contexts
// are cancelled by then.
func (w *workers[T]) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.ready.Broadcast()
}
