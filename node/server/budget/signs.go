package budget

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// signEvery is how often a peer hears that its request is held back. A client gives
// up on one of which nothing comes for a second.
const signEvery = 400 * time.Millisecond

// signs tells peers that what they asked for is held back, so that they do not take
// the node for dead and ask again.
type signs struct {
	tellPeer func(peer string) int
	sent     func(peer string, bytes int)

	mu      sync.Mutex     // guards below
	waiting map[string]int // requests of peers; none has 0
	timer   *time.Timer    // nil: nothing waits
	stopped bool
}

// hold begins to tell a peer; what it returns ends that.
func (s *signs) hold(peer string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[string]int{}
	}
	s.waiting[peer]++
	if s.timer == nil && !s.stopped {
		s.timer = time.AfterFunc(signEvery, s.tell)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[peer]--; s.waiting[peer] == 0 {
			delete(s.waiting, peer)
		}
	}
}

// tell sends the signs and comes back while any are due.
func (s *signs) tell() {
	s.mu.Lock()
	peers := slices.Sorted(maps.Keys(s.waiting)) // in order, for simulations
	s.timer = nil
	if len(peers) > 0 && !s.stopped {
		s.timer = time.AfterFunc(signEvery, s.tell)
	}
	s.mu.Unlock()
	for _, p := range peers {
		if n := s.tellPeer(p); n > 0 {
			s.sent(p, n)
		}
	}
}

func (s *signs) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
