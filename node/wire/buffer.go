package wire

import (
	"math/bits"
	"sync"
)

// Buffer is pooled memory that belongs to whoever received it, until Release.
type Buffer struct {
	data []byte
	pool *sync.Pool
}

// Bytes returns the content. It is nil for a nil or released Buffer.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.data
}

// Len returns the content's length.
func (b *Buffer) Len() int { return len(b.Bytes()) }

// Release gives the memory back; nobody may use Bytes afterwards. Releasing nil
// does nothing. A Buffer that is never released is merely collected.
func (b *Buffer) Release() {
	if b == nil || b.pool == nil {
		return
	}
	pool := b.pool
	b.pool, b.data = nil, b.data[:0]
	pool.Put(b)
}

const (
	minBufferBits = 9  // 512 B
	maxBufferBits = 24 // 16 MiB; larger ones are not pooled
)

// buffers pools by powers of two.
type buffers [maxBufferBits + 1]sync.Pool

// get returns a Buffer of n bytes with undefined content.
func (p *buffers) get(n int) *Buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minBufferBits)
	if class > maxBufferBits {
		return &Buffer{data: make([]byte, n)}
	}
	pool := &p[class]
	if b, ok := pool.Get().(*Buffer); ok {
		b.data, b.pool = b.data[:n], pool
		return b
	}
	return &Buffer{data: make([]byte, n, 1<<class), pool: pool}
}
