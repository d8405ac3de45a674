package server

import (
	"context"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Methods lists the methods that the node answers.
func (s *Server) Methods() []wire.Method { return s.host.Methods() }

// Committed is what this node's own copy of a slice shows, whatever its part.
func (s *Server) Committed(id geoconfig.SliceID) tree.View {
	return operate.Committed(s.store.Meta(), id)
}

// FetchEntry brings an entry's chunks, and returns when it gives up.
func (s *Server) FetchEntry(ctx context.Context, id geoconfig.SliceID, serial geoconfig.Serial, epoch geoconfig.Epoch, missing []chunk.Address) error {
	return s.fetchEntry(ctx, id, serial, epoch, missing)
}

// IntentsSeen counts the intents whose age sweeps remember.
func (s *Server) IntentsSeen() int {
	s.intents.mu.Lock()
	defer s.intents.mu.Unlock()
	return len(s.intents.seen)
}

// Knows reports whether the node has heard of a slice's row.
func (s *Server) Knows(id geoconfig.SliceID) bool {
	_, ok := s.directory.Slice(id)
	return ok
}
