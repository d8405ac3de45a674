package server

import (
	"context"
	"errors"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Methods lists the methods that the node answers.
func (s *Server) Methods() []wire.Method { return s.net.host.Methods() }

// Committed is what this node's own copy of a slice shows, whatever its part.
func (s *Server) Committed(id ids.Slice) tree.View {
	return operate.Committed(s.store.Meta(), id)
}

// FetchEntry brings an entry's chunks, and returns when it gives up.
func (s *Server) FetchEntry(ctx context.Context, id ids.Slice, serial ids.Serial, epoch ids.Epoch, missing []chunk.Address) error {
	return s.driver.fetchEntry(ctx, id, serial, epoch, missing)
}

// IntentsSeen counts the intents whose age sweeps remember.
func (s *Server) IntentsSeen() int {
	return s.intents.Remembered()
}

// Knows reports whether the node has heard of a slice's row.
func (s *Server) Knows(id ids.Slice) bool {
	_, ok := s.directory.Slice(id)
	return ok
}

// Fail ends the node as a failure of its disk does.
func (s *Server) Fail(err error) { s.fail(err) }

// StallLoop stops the loop until a channel is closed.
func (s *Server) StallLoop(until <-chan struct{}) {
	stalled := make(chan struct{})
	s.loop.Do(func(*replica.Node, replica.Time) {
		close(stalled)
		<-until
	})
	<-stalled
}

// Ending is closed once the node hands nothing over any more.
func (s *Server) Ending() <-chan struct{} { return s.life.ctx.Done() }

// Pending counts the creates that the node keeps apart from its log.
func (s *Server) Pending() int { return s.answers.pending.Len() }

// HasChunk reports whether a chunk is on the node's disk. It does not pin the chunk.
func (s *Server) HasChunk(a chunk.Address) bool {
	_, ok := s.store.Packs().Length(a)
	return ok
}

// History returns how many versions that are not current a slice has here.
func (s *Server) History(id ids.Slice) (n int, err error) {
	f := s.store.Meta().Freeze()
	rows, err := f.Rows(id, meta.Row{}, 1<<30)
	for i := range rows {
		if !rows[i].Plain() && rows[i].Area != meta.Place(true, nil).Area {
			n++
		}
	}
	return n, errors.Join(err, f.Close())
}

// Spoil takes a chunk away, as damage that a read finds does.
func (s *Server) Spoil(a chunk.Address) { s.store.Packs().Forget(a) }

// SpoilRecord changes the mode in an object's record below everything that knows of it.
func (s *Server) SpoilRecord(ctx context.Context, o ids.Object) error {
	var failed error
	err := s.loop.Ask(ctx, func(*replica.Node, replica.Time) {
		key := tree.RecordKey(o)
		value, at, _, err := s.store.Meta().Slice(o.Slice()).GetTime(key)
		var n *tree.Inode
		if err == nil {
			n, err = tree.DecodeInode(o, value)
		}
		if err == nil {
			n.Mode ^= 0o111
			b := s.store.Meta().NewBatch()
			if err = b.Put(o.Slice(), key, tree.AppendInode(nil, n), at); err == nil {
				err = b.Commit()
			}
		}
		failed = err
	})
	return errors.Join(err, failed)
}
