package server

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/hlc"
)

// base is who a node is in this life, and where it takes time and chance from.
// Its fields are set before any part is made, and do not change.
type base struct {
	id     ids.Node
	boot   uint64        // tells the lives of the process apart
	began  time.Duration // by clock
	clock  boottime.Func
	wall   func() time.Time
	hlc    *hlc.Clock
	chance *source
	logger *slog.Logger
}

// newBase begins a life of a node.
func newBase(d *Deps) base {
	id := ids.Node(d.Key.KeyID())
	return base{id: id, boot: d.Random.Uint64(), began: d.Clock(), clock: d.Clock, wall: d.Wall, hlc: hlc.New(d.Wall),
		chance: &source{rand: d.Random}, logger: d.Logger.With(slog.String("node", shortID(id)))}
}

// shortID is the end of a node's ID, which tells nodes apart in a log.
func shortID(id ids.Node) string { return string(id[max(0, len(id)-8):]) }

// batchKey names a batch for the configuration store, as no other batch is
// named.
func (b *base) batchKey(kind string) string {
	return fmt.Sprintf("%s/%s/%x/%d", kind, b.id, b.boot, b.chance.Uint64())
}

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
