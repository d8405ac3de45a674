package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// source is the node's randomness; Deps.Random alone is not for several
// goroutines. It is safe for concurrent use.
type source struct {
	mu   sync.Mutex // guards rand
	rand *rand.Rand
}

// Uint64 implements vivaldi.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Uint64()
}

// batchKey names a batch for the configuration store, as no other batch is
// named.
func (s *Server) batchKey(kind string) string {
	return fmt.Sprintf("%s/%s/%x/%d", kind, s.id, s.boot, s.chance.Uint64())
}
