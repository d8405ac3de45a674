package listing

import (
	"sync"
)

// streams are the listings under way, by the number that their pages carry.
type streams struct {
	mu   sync.Mutex // guards below
	by   map[uint64]*stream
	last uint64
}

func (t *streams) put(s *stream) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[uint64]*stream{}
	}
	delete(t.by, s.number)
	t.last++
	t.by[t.last] = s
	return t.last
}

func (t *streams) remove(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, s.number)
}
