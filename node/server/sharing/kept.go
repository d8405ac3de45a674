package sharing

import (
	"container/list"
	"sync"

	"cartwheel.dev/node/chunk"
)

// entryCost is what a chunk counts beside its bytes, for its entry.
const entryCost = 256

// kept is chunks in memory under one bound of bytes. What was used least recently
// goes first. It is safe for concurrent use. The bytes are never changed.
type kept struct {
	limit int64

	mu    sync.Mutex // guards below
	used  int64
	order *list.List // of *keptChunk, the one used last in front
	by    map[chunk.Address]*list.Element
}

type keptChunk struct {
	address chunk.Address
	data    []byte
}

func newKept(limit int64) *kept {
	return &kept{limit: limit, order: list.New(), by: map[chunk.Address]*list.Element{}}
}

// get returns a chunk, or nil.
func (k *kept) get(a chunk.Address) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.by[a]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return chunkOf(e).data
}

// put keeps a chunk, and lets others go until the bound holds. A chunk that alone
// is more than the bound is not kept.
func (k *kept) put(a chunk.Address, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cost := int64(len(data)) + entryCost
	if k.by[a] != nil || cost > k.limit {
		return
	}
	k.used += cost
	k.by[a] = k.order.PushFront(&keptChunk{a, data})
	for k.used > k.limit {
		k.dropLocked(k.order.Back())
	}
}

// dropLocked forgets a chunk. Called with mu held.
func (k *kept) dropLocked(e *list.Element) {
	c := chunkOf(e)
	k.order.Remove(e)
	delete(k.by, c.address)
	k.used -= int64(len(c.data)) + entryCost
}

// drop forgets everything.
func (k *kept) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order.Init()
	clear(k.by)
	k.used = 0
}

// held is how many bytes are kept.
func (k *kept) held() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used
}

func chunkOf(e *list.Element) *keptChunk {
	c, _ := e.Value.(*keptChunk) // the list has no others
	return c
}
