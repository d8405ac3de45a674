package pack

import (
	"sync"
	"sync/atomic"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

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
