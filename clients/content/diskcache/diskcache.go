// Package diskcache keeps immutable content on a client's disk: a bounded
// number of segment files that records are appended to, and an index of them in
// memory, read back at the start. What is in it may vanish at any time (it is a
// cache, nothing is synced), but what it returns is what was put: every record
// is proven by its checksum when it is read. The oldest segment goes first;
// what is read from it meanwhile is kept. The format is described in
// docs/formats/disk-cache.md.
//
// A Cache may be used from many goroutines; one goroutine writes. Two processes
// cannot share a directory.
package diskcache

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/dirlock"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

// Options sets up a Cache.
type Options struct {
	// Limit bounds the bytes on disk; the oldest segment goes when it is hit.
	// At least 1 MiB.
	Limit  int64
	Logger *slog.Logger
}

// queueBytes bounds what waits to be written; what does not fit is not kept.
const queueBytes = 8 << 20

// Cache is a directory of cached content.
type Cache struct {
	dir     string
	limit   int64
	segment int64 // bytes after which a new segment is begun
	lock    *dirlock.Lock
	logger  *slog.Logger
	done    chan struct{}

	mu       sync.Mutex
	work     *sync.Cond // the queue changed, or closing
	index    map[string]place
	segments []*segment // oldest first; records are appended to the last
	used     int64
	queue    []item
	queued   int64
	writing  bool
	closed   bool
	drained  bool // closed, and the writer has ended
	broken   bool // the disk refused: nothing more is kept
}

type item struct{ key, data []byte }

// place is where a record's data lies.
type place struct {
	seg    *segment
	offset int64
	length uint32
	sum    uint32
}

// segment is one file. Readers hold it open by the count.
type segment struct {
	number uint64
	file   *os.File
	size   int64
	keys   []string
	users  int // guarded by the cache's mutex
	gone   bool
}

var _ content.DiskCache = (*Cache)(nil)

// Open takes the directory, making it where it is missing, and reads what is in
// it. Close the Cache.
func Open(dir string, o Options) (*Cache, error) {
	const op fault.Op = "diskcache.Open"
	if o.Limit < 1<<20 {
		return nil, fault.Errorf(fault.Invalid, op, dir, "a disk cache has at least 1 MiB, not %d bytes", o.Limit)
	}
	lock, err := dirlock.Take(dir)
	if err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	c := &Cache{
		dir: dir, limit: o.Limit, segment: min(max(o.Limit/16, 256<<10), 64<<20), lock: lock, logger: o.Logger,
		done: make(chan struct{}), index: map[string]place{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.work = sync.NewCond(&c.mu)
	if err := c.load(); err != nil {
		_ = lock.Close() // the first error counts
		return nil, fault.FromOS(op, dir, err)
	}
	go c.write()
	return c, nil
}

// Close writes what waits and gives the directory back. It is idempotent.
func (c *Cache) Close() error {
	const op fault.Op = "diskcache.Close"
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.work.Broadcast()
	c.mu.Unlock()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drained = true
	for _, s := range c.segments {
		c.retire(s, false)
	}
	c.segments, c.index = nil, map[string]place{}
	return fault.FromOS(op, c.dir, c.lock.Close())
}

// Put queues content to be kept; what is there already, and what the queue has
// no room for, is not. The bytes must not change any more.
func (c *Cache) Put(key, data []byte) {
	if len(key) != keySize || len(data) == 0 || int64(len(data)) > min(c.segment, maxData) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.index[string(key)]; have || c.closed || c.broken || c.queued+int64(len(data)) > queueBytes {
		return
	}
	c.queue = append(c.queue, item{key, data})
	c.queued += int64(len(data))
	c.work.Signal()
}

// Get reads content and proves it. Damaged records are forgotten.
func (c *Cache) Get(key []byte) ([]byte, bool) {
	c.mu.Lock()
	p, ok := c.index[string(key)]
	if !ok {
		c.mu.Unlock()
		return nil, false
	}
	p.seg.users++
	oldest := len(c.segments) > 1 && c.segments[0] == p.seg
	c.mu.Unlock()
	data := make([]byte, p.length)
	_, err := p.seg.file.ReadAt(data, p.offset)
	good := err == nil && checksum(key, data) == p.sum
	c.mu.Lock()
	p.seg.users--
	c.retire(p.seg, p.seg.gone)
	if (!good || oldest) && c.index[string(key)] == p {
		delete(c.index, string(key))
	}
	c.mu.Unlock()
	if !good {
		c.logger.Warn("a record of the disk cache is damaged", slog.String("file", c.name(p.seg.number)), logattr.Err(err))
		return nil, false
	}
	if oldest {
		c.Put(key, data) // it is still wanted: move it to the newest segment
	}
	return data, true
}

// Forget implements content.DiskCache.
func (c *Cache) Forget(key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.index, string(key))
}

// Has implements content.DiskCache.
func (c *Cache) Has(key []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.index[string(key)]
	return ok
}

// Wait waits until everything queued so far is written.
func (c *Cache) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) > 0 || c.writing) && !c.closed {
		c.work.Wait()
	}
}

// Used is the number of bytes on disk.
func (c *Cache) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// write is the one goroutine that appends.
func (c *Cache) write() {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.queue) == 0 {
			if c.closed {
				return
			}
			c.work.Wait()
		}
		it := c.queue[0]
		c.queue = c.queue[1:]
		if len(c.queue) == 0 {
			c.queue = nil
		}
		c.writing = true
		err := c.appendLocked(it)
		c.queued -= int64(len(it.data))
		c.writing = false
		if err != nil && !c.broken {
			c.broken = true
			c.logger.Warn("the disk cache takes no more", slog.String("dir", c.dir), logattr.Err(err))
		}
		c.work.Broadcast()
	}
}

// appendLocked adds a record to the last segment, beginning a new one and dropping
// the oldest as need be. The mutex is held, but not while writing.
func (c *Cache) appendLocked(it item) error {
	if _, have := c.index[string(it.key)]; have || c.broken {
		return nil
	}
	var s *segment
	if n := len(c.segments); n > 0 && c.segments[n-1].size < c.segment {
		s = c.segments[n-1]
	}
	size := int64(headerSize + len(it.data))
	for c.used+size+int64(len(magic)) > c.limit && len(c.segments) > 0 && c.segments[0] != s {
		c.drop(c.segments[0])
	}
	if s == nil {
		var err error
		if s, err = c.begin(); err != nil {
			return err
		}
	}
	at := s.size
	s.users++
	c.mu.Unlock()
	header := encode(it.key, it.data)
	_, err := s.file.WriteAt(header, at)
	if err == nil {
		_, err = s.file.WriteAt(it.data, at+headerSize)
	}
	c.mu.Lock()
	s.users--
	if err != nil {
		return err
	}
	s.size += size
	c.used += size
	k := string(it.key)
	s.keys = append(s.keys, k)
	c.index[k] = place{s, at + headerSize, uint32(len(it.data)), checksum(it.key, it.data)}
	return nil
}

// begin makes a new segment.
func (c *Cache) begin() (*segment, error) {
	number := uint64(1)
	if n := len(c.segments); n > 0 {
		number = c.segments[n-1].number + 1
	}
	f, err := os.OpenFile(c.name(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt([]byte(magic), 0); err != nil {
		_ = f.Close() // the first error counts
		return nil, err
	}
	s := &segment{number: number, file: f, size: int64(len(magic))}
	c.segments = append(c.segments, s)
	c.used += s.size
	return s, nil
}

// drop removes the oldest segment.
func (c *Cache) drop(s *segment) {
	for _, k := range s.keys {
		if c.index[k].seg == s {
			delete(c.index, k)
		}
	}
	c.segments = c.segments[1:]
	c.used -= s.size
	c.retire(s, true)
	if err := os.Remove(c.name(s.number)); err != nil {
		c.logger.Warn("a segment of the disk cache cannot be removed", slog.String("file", c.name(s.number)), logattr.Err(err))
	}
}

// retire closes a segment's file once nobody reads it any more.
func (c *Cache) retire(s *segment, gone bool) {
	s.gone = s.gone || gone
	if (s.gone || c.drained) && s.users == 0 && s.file != nil {
		_ = s.file.Close() // it was only read, or is of no more use
		s.file = nil
	}
}

func (c *Cache) name(number uint64) string {
	return filepath.Join(c.dir, segmentName(number))
}
