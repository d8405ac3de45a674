package framing

import (
	"math/bits"
	"sync"
)

// Buffer is pooled memory that belongs to its receiver until Release.
type Buffer struct {
	data []byte
	pool *sync.Pool
}

// NewBuffer returns a Buffer over data that no pool takes back.
func NewBuffer(data []byte) *Buffer { return &Buffer{data: data} }

// Bytes returns the content. It is nil for a nil or released Buffer.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.data
}

// Len returns the content's length.
func (b *Buffer) Len() int { return len(b.Bytes()) }

// Release gives the memory back; Bytes must not be used afterwards. Releasing nil
// does nothing. The garbage collector takes a Buffer that is never released.
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

// Buffers pools Buffers by powers of two. The zero value is ready for use.
type Buffers [maxBufferBits + 1]sync.Pool

// Get returns a Buffer of n bytes with undefined content.
func (p *Buffers) Get(n int) *Buffer {
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
