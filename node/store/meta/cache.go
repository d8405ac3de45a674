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
}

type cacheEntry struct {
	key   string
	value []byte // with its time; nil: absent
	slot  int
	used  bool
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
	if e == nil {
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
	if gen == s.gen && s.limit > 0 {
		s.store(key, value)
	}
}

// update replaces what is known of a key after a commit.
func (s *cacheShard) update(key, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	if s.limit > 0 {
		s.store(key, value)
	}
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
		e.value = value
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
