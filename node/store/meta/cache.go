package meta

import (
	"hash/maphash"
	"sync"
)

// cacheShards is a power of two.
const cacheShards = 16

// entryOverhead is what an entry costs beside its key and value, in bytes.
const entryOverhead = 96

// valueCache holds current values by full key, and keys known to be absent. It
// is bounded in bytes; the entry that a clock hand finds unused goes first.
type valueCache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu      sync.Mutex // guards what follows
	entries map[string]*cacheEntry
	ring    []*cacheEntry
	hand    int
	bytes   int64
	limit   int64
	// gen counts the invalidations: a value read from Pebble is kept only if
	// there was none since before the reading.
	gen uint64
	// writing counts the keys that a batch being applied changes. Meanwhile
	// nothing that a reader found is kept: it may be older than the batch.
	writing int
}

type cacheEntry struct {
	key   string
	value []byte // with its time; nil: absent
	slot  int
	used  bool
	// hidden: a batch that changes the value is being applied.
	hidden bool
}

func (e *cacheEntry) size() int64 { return int64(len(e.key)+len(e.value)) + entryOverhead }

func newValueCache(limit int64) *valueCache {
	c := &valueCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].entries = map[string]*cacheEntry{}
		c.shards[i].limit = limit / cacheShards
	}
	return c
}

func (c *valueCache) shard(key []byte) *cacheShard {
	return &c.shards[maphash.Bytes(c.seed, key)&(cacheShards-1)]
}

// get returns the value and whether the cache knows; otherwise gen is to be
// given to put.
func (s *cacheShard) get(key []byte) (value []byte, known bool, gen uint64) {
	s.mu.Lock()
	e := s.entries[string(key)]
	if e == nil || e.hidden {
		gen = s.gen
		s.mu.Unlock()
		return nil, false, gen
	}
	e.used = true
	value = e.value
	s.mu.Unlock()
	return value, true, 0
}

// put keeps what a reader found, unless something changed since get.
func (s *cacheShard) put(key, value []byte, gen uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gen == s.gen && s.writing == 0 && s.limit > 0 {
		s.store(key, value)
	}
}

// cached calls fn with every row that the cache may keep, and its shard locked.
func (c *valueCache) cached(written []row, fn func(*cacheShard, *row)) {
	for i := range written {
		w := &written[i]
		if w.key[0] != areaCurrent {
			continue
		}
		s := c.shard(w.key)
		s.mu.Lock()
		fn(s, w)
		s.mu.Unlock()
	}
}

// hide has readers ask Pebble for the keys of a batch from before the batch is
// applied until update or show. A reader of two keys, one after the other, then
// never finds the first as the batch leaves it and the second as it was before.
func (c *valueCache) hide(written []row) {
	c.cached(written, func(s *cacheShard, w *row) {
		s.gen++
		s.writing++
		if e := s.entries[string(w.key)]; e != nil {
			e.hidden = true
		}
	})
}

// show ends hide where the batch was not applied. The entries stay hidden until
// readers bring their values anew.
func (c *valueCache) show(written []row) {
	c.cached(written, func(s *cacheShard, _ *row) { s.writing-- })
}

// update ends hide after the batch was applied, and keeps its values.
func (c *valueCache) update(written []row) {
	c.cached(written, func(s *cacheShard, w *row) {
		s.gen++
		s.writing--
		if s.limit > 0 {
			s.store(w.key, w.value)
		}
	})
}

// reset forgets everything.
func (c *valueCache) reset() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.gen++
		clear(s.entries)
		clear(s.ring)
		s.ring, s.hand, s.bytes = s.ring[:0], 0, 0
		s.mu.Unlock()
	}
}

func (s *cacheShard) store(key, value []byte) {
	if e := s.entries[string(key)]; e != nil {
		s.bytes += int64(len(value) - len(e.value))
		e.value, e.hidden = value, false
	} else {
		e := &cacheEntry{key: string(key), value: value, slot: len(s.ring)}
		if e.size() > s.limit/4 {
			return
		}
		s.entries[e.key] = e
		s.ring = append(s.ring, e)
		s.bytes += e.size()
	}
	for s.bytes > s.limit && len(s.ring) > 0 {
		s.evict()
	}
}

// evict gives up the next entry that was not used since the hand came by.
func (s *cacheShard) evict() {
	for {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		e := s.ring[s.hand]
		if e.used {
			e.used = false
			s.hand++
			continue
		}
		last := len(s.ring) - 1
		s.ring[s.hand] = s.ring[last]
		s.ring[s.hand].slot = s.hand
		s.ring[last] = nil
		s.ring = s.ring[:last]
		delete(s.entries, e.key)
		s.bytes -= e.size()
		return
	}
}
