package route

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Limits of a window.
const (
	// firstWindow is how many attempts may be under way on a slice at first.
	firstWindow = 64
	// placeHeld is how long an attempt keeps its place. One that takes longer may
	// be waiting at its node for what this client does next.
	placeHeld = time.Second
)

// window bounds the attempts under way on one slice by what its active can
// take, as TCP does: it grows with every answer, and halves with every round in
// which an attempt is refused as Overloaded or not answered in time. Attempts
// beyond it wait here, the lowest number first, where they cost the node
// nothing: a node with twice as much to do as it can would otherwise spend its
// time with refusals. After a refusal nobody is sent for a while, longer each
// time. It is safe for use by many goroutines.
type window struct {
	most   int
	jitter func(time.Duration) time.Duration

	mu      sync.Mutex    // guards below
	size    float64       // how many attempts may be under way, 1 to most
	calm    bool          // it was never cut: it grows by one with each answer
	under   int           // attempts that hold a place
	round   uint64        // counts the cuts
	pause   time.Duration // of the last refusal; 0 after an answer
	shut    bool          // a pause is under way
	waiting queue
}

// verdict is what an attempt says of its node's load.
type verdict uint8

const (
	nothing  verdict = iota
	answered         // it took this one
	late             // no answer within the attempt's patience
	refused          // Overloaded
)

// place is that of one attempt in a window.
type place struct {
	w     *window
	round uint64
	timer *time.Timer
	gone  bool // guarded by the window's mutex
}

func newWindow(most int, jitter func(time.Duration) time.Duration) *window {
	return &window{most: most, jitter: jitter, size: min(firstWindow, float64(most)), calm: true}
}

// enter waits for a place. It fails with the context's error.
func (w *window) enter(ctx context.Context, number uint64) (*place, error) {
	w.mu.Lock()
	if p := w.admitLocked(len(w.waiting) == 0); p != nil {
		w.mu.Unlock()
		return p, nil
	}
	v := &visitor{number: number, admitted: make(chan *place, 1)}
	heap.Push(&w.waiting, v)
	w.mu.Unlock()
	select {
	case p := <-v.admitted:
		return p, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	if v.index >= 0 {
		heap.Remove(&w.waiting, v.index)
	}
	w.mu.Unlock()
	select {
	case p := <-v.admitted:
		p.leave(nothing)
	default:
	}
	return nil, ctx.Err()
}

// admitLocked gives a place where there is one and first says that it is one's turn;
// the mutex is held.
func (w *window) admitLocked(first bool) *place {
	if !first || w.shut || w.under >= int(w.size) {
		return nil
	}
	w.under++
	p := &place{w: w, round: w.round}
	p.timer = time.AfterFunc(placeHeld, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.giveUpLocked()
	})
	return p
}

// giveUpLocked takes a place back; the window's mutex is held.
func (p *place) giveUpLocked() {
	if !p.gone {
		p.gone = true
		p.w.under--
		p.w.nextLocked()
	}
}

// nextLocked lets those in whose turn it is; the mutex is held.
func (w *window) nextLocked() {
	for len(w.waiting) > 0 {
		p := w.admitLocked(true)
		if p == nil {
			return
		}
		heap.Pop(&w.waiting).(*visitor).admitted <- p
	}
}

// leave gives a place back and says how the attempt went.
func (p *place) leave(v verdict) {
	p.timer.Stop()
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch v {
	case answered:
		w.grow()
	case late, refused:
		if p.round == w.round { // the others of this round say the same
			w.cut(v == refused)
		}
	}
	p.giveUpLocked()
}

func (w *window) grow() {
	w.pause = 0
	step := 1 / w.size
	if w.calm {
		step = 1
	}
	w.size = min(w.size+step, float64(w.most))
}

// cut halves the window and begins a round; with wait, a pause too.
func (w *window) cut(wait bool) {
	w.calm = false
	w.round++
	w.size = max(w.size/2, 1)
	if !wait || w.shut {
		return
	}
	w.pause = min(max(2*w.pause, firstWait), lastWait)
	w.shut = true
	time.AfterFunc(w.jitter(w.pause), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.shut = false
		w.nextLocked()
	})
}

// visitor waits for a place.
type visitor struct {
	number   uint64
	index    int // in the queue; -1: not there any more
	admitted chan *place
}

// queue is a heap of visitors, the lowest number first: whoever waits for a
// client's results waits for the lowest.
type queue []*visitor

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].number < q[j].number }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	v := x.(*visitor)
	v.index = len(*q)
	*q = append(*q, v)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	v := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	v.index = -1
	return v
}
