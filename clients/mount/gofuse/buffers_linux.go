package gofuse

import "sync"

// buffers lends large buffers, a bounded number at a time, and keeps a few: to
// make one costs as much as to fill it.
type buffers struct {
	size, most, keep int

	mu   sync.Mutex // guards the rest
	back sync.Cond  // one came back
	free [][]byte
	lent int
}

func newBuffers(size, most, keep int) *buffers {
	b := &buffers{size: size, most: most, keep: keep}
	b.back.L = &b.mu
	return b
}

// get lends a buffer, and waits while all are lent.
func (b *buffers) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.lent == b.most {
		b.back.Wait()
	}
	b.lent++
	n := len(b.free)
	if n == 0 {
		return make([]byte, b.size)
	}
	out := b.free[n-1]
	b.free = b.free[:n-1]
	return out
}

// put takes a buffer back.
func (b *buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent--
	if len(b.free) < b.keep {
		b.free = append(b.free, buf)
	}
	b.back.Signal()
}
