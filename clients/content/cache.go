package content

import (
	"encoding/binary"
	"sync"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/node/chunk"
)

// Kinds of keys.
const (
	wholeChunk = ^uint64(0)      // address is the chunk's
	windowBit  = uint64(1) << 63 // address is a root's: extents of a window
)

// key names cached content: a whole chunk, a block of a version's bytes (index
// counts blocks), or a window of its range map.
type key struct {
	address chunk.Address
	index   uint64
}

// entry is what one request brings. Until done is closed it is on its way;
// then it does not change.
type entry struct {
	done    chan struct{}
	work    *trace.Operation // what it cost, of one that is fetched in the background
	err     error
	extents []chunk.Extent // of a window

	isMap      bool
	cost       int64
	keys       []key
	prev, next *entry // in its list, newest first; guarded by the cache's mutex
	listed     bool
}

// span is one key's bytes.
type span struct {
	entry *entry
	data  []byte // set before the entry is done
}

// cache holds immutable content under one bound of bytes, in order of use.
// Windows of range maps go only when no content is left, or when they are more
// than a quarter: they save a round trip for each of many reads.
type cache struct {
	limit int64
	trace *trace.Recorder

	mu         sync.Mutex
	used       int64
	maps       int64 // of used
	onTheWay   int64 // of used
	spans      map[key]*span
	data, map_ list
}

// list is a ring of entries; the root's next is the newest.
type list struct{ root entry }

func (l *list) init() { l.root.prev, l.root.next = &l.root, &l.root }

func (l *list) push(e *entry) {
	e.prev, e.next = &l.root, l.root.next
	e.prev.next, e.next.prev, e.listed = e, e, true
}

func (l *list) remove(e *entry) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next, e.listed = nil, nil, false
}

func newCache(limit int64, r *trace.Recorder) *cache {
	c := &cache{limit: limit, trace: r, spans: map[key]*span{}}
	c.data.init()
	c.map_.init()
	return c
}

func (c *cache) held() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

func (c *cache) list(e *entry) *list {
	if e.isMap {
		return &c.map_
	}
	return &c.data
}

// get finds what a key names, on its way or here.
func (c *cache) get(k key) *span {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spans[k]
	if s != nil && s.entry.listed {
		l := c.list(s.entry)
		l.remove(s.entry)
		l.push(s.entry)
	}
	return s
}

// reserve makes an entry for those keys that are not here yet, for the caller
// to fetch and settle; nil where there are none. Optional entries are refused
// while half of the cache is on its way.
func (c *cache) reserve(isMap, optional bool, cost func(i int) int64, keys ...key) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e *entry
	for i, k := range keys {
		if c.spans[k] != nil {
			continue
		}
		if optional && c.onTheWay+cost(i) > c.limit/2 {
			break
		}
		if e == nil {
			e = &entry{done: make(chan struct{}), isMap: isMap}
			if isMap || optional {
				e.work = c.trace.Begin(trace.ReadAhead, trace.Caller{})
			}
		}
		c.spans[k] = &span{entry: e}
		e.keys = append(e.keys, k)
		e.cost += cost(i)
		c.onTheWay += cost(i)
		c.used += cost(i)
	}
	c.evict()
	return e
}

// settle makes a reserved entry what its request brought; data has the bytes
// of each key. An error forgets it.
func (c *cache) settle(e *entry, data [][]byte, cost int64, err error) {
	defer close(e.done)
	c.arrived(e, data, cost, err)
	c.trace.EndWork(e.work, nil)
}

func (c *cache) arrived(e *entry, data [][]byte, cost int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onTheWay -= e.cost
	c.used -= e.cost
	e.err = err
	if err != nil {
		for _, k := range e.keys {
			delete(c.spans, k)
		}
	} else {
		for i, k := range e.keys {
			if data != nil {
				c.spans[k].data = data[i]
			}
		}
		e.cost = cost
		c.used += cost
		if e.isMap {
			c.maps += cost
		}
		c.list(e).push(e)
		c.evict()
	}
}

// evict drops what was used least recently until the bound holds.
func (c *cache) evict() {
	for c.used > c.limit {
		l := &c.data
		if l.root.prev == &l.root || (c.maps > c.limit/4 && c.map_.root.prev != &c.map_.root) {
			l = &c.map_
		}
		e := l.root.prev
		if e == &l.root {
			return
		}
		l.remove(e)
		c.used -= e.cost
		if e.isMap {
			c.maps -= e.cost
		}
		for _, k := range e.keys {
			delete(c.spans, k)
		}
	}
}

// clear drops all that is not on its way.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.limit
	c.limit = 0
	c.evict()
	c.limit = limit
}

// bytes is the key as the disk cache knows it.
func (k key) bytes() []byte {
	out := make([]byte, 0, chunk.AddressSize+8)
	return binary.BigEndian.AppendUint64(append(out, k.address[:]...), k.index)
}
