package past

import (
	"container/list"
	"context"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

const (
	// rangeBytes is what is asked for of a large file at once.
	rangeBytes = 1 << 20
	// blockBytes bounds the blocks in memory. The kernel keeps what programs read.
	blockBytes = 16 << 20
)

// blockKey names bytes that never change: a block of a version with a manifest, or all of
// a small file at a time.
type blockKey struct {
	root   chunk.Address
	index  uint64
	object ids.Object
	at     hlc.Time
}

// block is bytes that are here, or on their way.
type block struct {
	key  blockKey
	done chan struct{} // closed once data and err are set
	data []byte
	err  error
}

// blocks keeps the bytes that were used last. What several readers want is asked for
// once.
type blocks struct {
	limit int

	mu    sync.Mutex // guards below; held over no call
	byKey map[blockKey]*list.Element
	order *list.List // of *block, the one used last behind
	bytes int
}

func newBlocks(limit int) *blocks {
	return &blocks{limit: limit, byKey: map[blockKey]*list.Element{}, order: list.New()}
}

// put keeps bytes that came unasked.
func (b *blocks) put(k blockKey, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.byKey[k]; known {
		return
	}
	x := &block{key: k, done: make(chan struct{}), data: data}
	close(x.done)
	b.byKey[k] = b.order.PushBack(x)
	b.addedLocked(len(data))
}

// get returns bytes, which must not be changed; where they are not here and on nobody's
// way, fetch brings them. Who waits for another's request that fails makes its own.
func (b *blocks) get(ctx context.Context, k blockKey, fetch func() ([]byte, error)) ([]byte, error) {
	for {
		x, mine := b.claim(k)
		if mine {
			b.bring(x, fetch)
			return x.data, x.err
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Interrupted, "past.blocks", "", context.Cause(ctx))
		}
		if x.err == nil {
			return x.data, nil
		}
	}
}

// claim returns a block, and whether it is the caller's to bring.
func (b *blocks) claim(k blockKey) (x *block, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byKey[k]; e != nil {
		b.order.MoveToBack(e)
		return e.Value.(*block), false
	}
	x = &block{key: k, done: make(chan struct{})}
	b.byKey[k] = b.order.PushBack(x)
	return x, true
}

// bring settles a block that was claimed, also where fetch panics.
func (b *blocks) bring(x *block, fetch func() ([]byte, error)) {
	x.err = fault.E(fault.Other, "past.blocks", "", "the request ended without an answer")
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(x.done)
		if x.err != nil {
			b.order.Remove(b.byKey[x.key])
			delete(b.byKey, x.key)
			return
		}
		b.addedLocked(len(x.data))
	}()
	x.data, x.err = fetch()
}

// addedLocked counts bytes, and drops those used the longest time ago that are too many.
// What is on its way has no bytes yet and stays. The mutex is held.
func (b *blocks) addedLocked(n int) {
	b.bytes += n
	for e := b.order.Front(); e != nil && b.bytes > b.limit; {
		x, next := e.Value.(*block), e.Next()
		select {
		case <-x.done:
			b.order.Remove(e)
			delete(b.byKey, x.key)
			b.bytes -= len(x.data)
		default:
		}
		e = next
	}
}
