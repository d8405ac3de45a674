package gofuse

import "sync"

const (
	// A request or an answer up to smallSize is kept in its worker's own
	// buffers; others, of up to maxTransfer, in one of maxBuffers. When all are
	// in use, requests go on in memory of their own, of which writes take at most
	// extraBytes: then they are cut short, and their programs write the rest.
	smallSize   = 8 << 10
	bufferSize  = maxTransfer + smallSize
	maxBuffers  = maxInflight / bufferSize
	keepBuffers = 6
	extraBytes  = 256 << 20
)

// buffers lends large buffers, a bounded number at a time, and keeps a few: to
// make one costs as much as to fill it. Beyond the number it lends memory of the
// exact length. Of that, what a write gets is bounded: see room.
type buffers struct {
	size, most, keep int
	extra            int // bytes that writes may take beyond most buffers

	mu   sync.Mutex // guards the rest
	free [][]byte
	lent int
	more int // bytes lent beyond most buffers
}

func newBuffers(size, most, keep, extra int) *buffers {
	return &buffers{size: size, most: most, keep: keep, extra: extra}
}

// get lends a buffer of the full size, nil where as many are lent as there may
// be. It never waits: who reads the kernel's requests calls it.
func (b *buffers) get() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lent == b.most {
		return nil
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

// getExact lends n bytes beyond the number.
func (b *buffers) getExact(n int) []byte {
	b.mu.Lock()
	b.more += n
	b.mu.Unlock()
	return make([]byte, n)
}

// shareOfExtra is which part of what is left one write may take.
const shareOfExtra = 16

// room is how many of n bytes a write may keep beyond the number of buffers: a
// share of what is left, of which something always is. What it leaves out its
// program writes again.
func (b *buffers) room(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := max((b.extra-b.more)/shareOfExtra, smallSize)
	return min(n, share&^(smallSize-1))
}

// put takes back what get or getExact lent.
func (b *buffers) put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cap(buf) != b.size {
		b.more -= cap(buf)
		return
	}
	b.lent--
	if len(b.free) < b.keep {
		b.free = append(b.free, buf[:b.size])
	}
}
