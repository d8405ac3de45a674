package strain

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// window is what a throughput is worst over.
const window = 10 * time.Second

// notes are what many workers did within a length of time.
type notes struct {
	began               time.Time
	length              time.Duration
	asked, done, failed atomic.Int64

	mu      sync.Mutex // guards below
	refused error      // the first
	took    []time.Duration
	windows []int64 // done in each whole window
}

func newNotes(length time.Duration) *notes {
	return &notes{began: time.Now(), length: length, windows: make([]int64, int(length/window))}
}

// over says whether the time has passed.
func (n *notes) over() bool { return time.Since(n.began) >= n.length }

// note takes an operation that has ended. What ends after the time does not
// count as done.
func (n *notes) note(began time.Time, err error) {
	at := time.Since(n.began)
	switch {
	case err != nil:
		n.refuse(err)
		return
	case at >= n.length:
		return
	}
	n.done.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took = append(n.took, time.Since(began))
	if w := int(at / window); w < len(n.windows) {
		n.windows[w]++
	}
}

// refuse takes one that failed.
func (n *notes) refuse(err error) {
	n.failed.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == nil {
		n.refused = err
	}
}

// result sums up.
func (n *notes) result() result {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := result{began: n.began, refused: n.refused, failed: n.failed.Load(), asked: float64(n.asked.Load()) / n.length.Seconds(), done: float64(n.done.Load()) / n.length.Seconds(), took: n.took}
	r.worst = r.done
	if len(n.windows) > 0 {
		r.worst = float64(slices.Min(n.windows)) / window.Seconds()
	}
	slices.Sort(r.took)
	return r
}

// result is what came of it, a second.
type result struct {
	began              time.Time
	asked, done, worst float64
	failed             int64
	refused            error           // the first
	took               []time.Duration // in order
}

// percentile is how long so great a share of the operations took at most.
func (r result) percentile(p float64) time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	return r.took[min(len(r.took)-1, int(p*float64(len(r.took))))]
}
