package pack

import (
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/store/disk"
)

// writeBuffer is the size of one write to a pack.
const writeBuffer = 1 << 20

// write gives a batch a place and writes it; it is not durable yet. The pack's
// flight ends with publish, or here on an error. A new pack leaves so many bytes
// of the file system free.
func (p *Packs) write(b *batch, spare int64) (*file, error) {
	f, err := p.reserve(b, spare)
	if err != nil {
		return nil, err
	}
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	s := sealing{f: f, buf: *buf, sector: b.sector, date: p.opts.Wall()}
	if err := s.batch(b); err != nil {
		if f.release() {
			p.sealer.Go(func() { p.seal(f) })
		}
		if fault.Is(err, fault.NoSpace) {
			return nil, err // the place stays unused; nothing was promised
		}
		return nil, p.fail(err)
	}
	f.mu.Lock()
	f.written++
	f.mu.Unlock()
	return f, nil
}

// sealing lays a stream into sectors and writes them in large pieces.
type sealing struct {
	f      *file
	buf    []byte
	sector int64 // of the start of buf
	at     int   // bytes of buf in use, sums included
	put    int64 // bytes of stream written
	date   time.Time
}

func (s *sealing) batch(b *batch) error {
	var head [batchHeader]byte
	h := batchHead{sectors: uint32(b.sectors), count: uint32(b.count()), written: uint64(s.date.Unix())}
	h.encode(head[:], s.f.key, b.sector)
	if err := s.write(head[:]); err != nil {
		return err
	}
	var entry [entrySize]byte
	for i := range b.addresses {
		encodeEntry(entry[:], &b.addresses[i], uint32(len(b.bodies[i])), 0)
		if err := s.write(entry[:]); err != nil {
			return err
		}
	}
	base := b.sector * sectorData
	var gap [unit]byte
	for i, body := range b.bodies {
		if err := s.write(gap[:b.offsets[i]-base-s.put]); err != nil {
			return err
		}
		if err := s.write(body); err != nil {
			return err
		}
	}
	return s.close()
}

// write adds bytes to the stream.
func (s *sealing) write(p []byte) error {
	s.put += int64(len(p))
	for len(p) > 0 {
		used := s.at % sectorSize
		n := copy(s.buf[s.at:s.at+sectorData-used], p)
		p = p[n:]
		s.at += n
		if used+n == sectorData {
			if err := s.seal(); err != nil {
				return err
			}
		}
	}
	return nil
}

// seal sums the sector that is full and writes the buffer if that is full too.
func (s *sealing) seal() error {
	start := s.at - sectorData
	sealSector(s.buf[start:start+sectorSize], s.f.key, s.sector+int64(start/sectorSize))
	s.at = start + sectorSize
	if s.at < len(s.buf) {
		return nil
	}
	return s.flush()
}

func (s *sealing) flush() error {
	if s.at == 0 {
		return nil
	}
	s.f.mu.Lock()
	w := s.f.w
	s.f.mu.Unlock()
	err := w.WriteAt(disk.PackWrite, s.buf[:s.at], s.sector*sectorSize)
	s.sector += int64(s.at / sectorSize)
	s.at = 0
	return err
}

// close fills the last sector with zeros and writes the rest.
func (s *sealing) close() error {
	if used := s.at % sectorSize; used > 0 {
		rest := s.buf[s.at : s.at+sectorData-used]
		clear(rest)
		s.at += len(rest)
		if err := s.seal(); err != nil {
			return err
		}
	}
	return s.flush()
}

// PutLazy takes chunks that the journal already holds: they are readable on
// return, and durable here after the next Sync; until then the journal must
// keep them. Nobody may change the bodies afterwards: they stay in memory, with
// what they are parts of, until some StageBytes of them are written together.
// While the disk is full they stay there: PutLazy takes them all the same, since
// they are committed.
func (p *Packs) PutLazy(addresses []chunk.Address, bodies [][]byte) error {
	if err := checkPairs("pack.PutLazy", addresses, bodies); err != nil {
		return err
	}
	for i := range addresses {
		p.pins.add(&addresses[i])
		if p.present(&addresses[i]) {
			continue
		}
		if err := p.stage.add(&addresses[i], bodies[i]); err != nil {
			return err
		}
	}
	return nil
}

// stage gathers chunks that were put lazily until a batch is worth writing. Its
// goroutine writes them; readers find them here meanwhile.
type stage struct {
	p     *Packs
	count atomic.Int64 // of chunks staged or being written, for the fast no

	mu      sync.RWMutex // guards what follows
	changed *sync.Cond   // on mu for writing
	bodies  map[chunk.Address][]byte
	waiting batch // not yet given to the writer
	bytes   int   // of waiting
	writing bool
	wanted  bool // somebody flushes
	closed  bool
	err     error // of the last writing; the chunks stay staged
	ended   chan struct{}
}

func (s *stage) init(p *Packs) {
	s.p = p
	s.changed = sync.NewCond(&s.mu)
	s.bodies = map[chunk.Address][]byte{}
	s.ended = make(chan struct{})
}

func (s *stage) get(a *chunk.Address) ([]byte, bool) {
	if s.count.Load() == 0 {
		return nil, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	body, ok := s.bodies[*a]
	return body, ok
}

// add stages a chunk, waiting while the disk is far behind.
func (s *stage) add(a *chunk.Address, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes >= 4*s.p.opts.StageBytes && !s.closed && s.err == nil {
		s.changed.Wait()
	}
	switch {
	case s.closed:
		return fault.E(fault.Closed, "pack.PutLazy", "", "")
	case s.err != nil && !fault.Is(s.err, fault.NoSpace) && s.bytes >= 4*s.p.opts.StageBytes:
		return s.err
	}
	if _, ok := s.bodies[*a]; ok {
		return nil
	}
	s.bodies[*a] = body
	s.waiting.addresses = append(s.waiting.addresses, *a)
	s.waiting.bodies = append(s.waiting.bodies, body)
	s.bytes += len(body)
	s.count.Add(1)
	if s.bytes >= s.p.opts.StageBytes && !s.writing {
		s.changed.Broadcast()
	}
	return nil
}

// run writes what is staged when there is enough of it or somebody asks.
func (s *stage) run() {
	defer close(s.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !s.closed && !s.wanted && (s.bytes < s.p.opts.StageBytes || s.err != nil) {
			s.changed.Wait()
		}
		if s.closed {
			return
		}
		s.wanted = false
		s.writeWaitingLocked()
		s.changed.Broadcast()
	}
}

// writeWaitingLocked writes everything that waits. Called with mu held; it is given
// back meanwhile.
func (s *stage) writeWaitingLocked() {
	all := s.waiting
	s.waiting = batch{}
	s.bytes = 0
	s.writing = true
	s.err = nil
	for len(all.bodies) > 0 && s.err == nil {
		rest := all
		part := all.cut(min(s.p.opts.PackBytes/4, 4<<20))
		s.mu.Unlock()
		f, err := s.p.write(&part, 0)
		if fault.Is(err, fault.NoSpace) {
			s.p.opts.Relieve()
		}
		if err == nil {
			s.p.publish(f, &part)
		}
		s.mu.Lock()
		if err != nil {
			s.err = err
			s.putBack(rest)
			break
		}
		for i := range part.addresses {
			delete(s.bodies, part.addresses[i])
		}
		s.count.Add(-int64(part.count()))
	}
	s.writing = false
}

// putBack makes what could not be written wait again.
func (s *stage) putBack(rest batch) {
	rest.addresses = append(rest.addresses[:len(rest.addresses):len(rest.addresses)], s.waiting.addresses...)
	rest.bodies = append(rest.bodies[:len(rest.bodies):len(rest.bodies)], s.waiting.bodies...)
	s.waiting = batch{addresses: rest.addresses, bodies: rest.bodies}
	s.bytes = 0
	for _, b := range rest.bodies {
		s.bytes += len(b)
	}
}

// flush returns when everything staged before it is written.
func (s *stage) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for s.writing { // what it writes was staged before us
		s.changed.Wait()
	}
	if len(s.waiting.bodies) == 0 {
		return nil
	}
	s.err = nil
	s.wanted = true
	s.changed.Broadcast()
	for (s.wanted || s.writing) && !s.closed {
		s.changed.Wait()
	}
	return s.err
}

func (s *stage) close() {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.ended
}
