package scrub

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/tree"
)

const (
	// lostMost bounds the lost chunks that are remembered. What is beyond it is found again
	// by the next round.
	lostMost = 4096
	// objectsMost bounds the objects that are named for a lost chunk.
	objectsMost = 8
)

// lose remembers a chunk that no member gave. People hear of it once.
func (s *Scrubber) lose(a chunk.Address, by []ids.Slice, unasked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.Lost, func(l lostChunk) bool { return l.Chunk == a.String() })
	if at >= 0 {
		s.Lost[at].Slices, s.Lost[at].Unasked = by, unasked
		return
	}
	if len(s.Lost) >= lostMost {
		return
	}
	s.Lost = append(s.Lost, lostChunk{Chunk: a.String(), Slices: by, SinceNS: s.o.Wall().UnixNano(), Unasked: unasked})
	s.o.Logger.Error("no member has a chunk that is damaged or missing here", slog.String("address", a.String()), logattr.Slice(by[0]), slog.Bool("unasked", unasked))
}

// retry asks again for lost chunks, and forgets those that are here or that no record names
// any more.
func (s *Scrubber) retry(ctx context.Context) {
	s.mu.Lock()
	var list []chunk.Address
	for _, l := range s.Lost {
		if a, err := chunk.ParseAddress(l.Chunk); err == nil {
			list = append(list, a)
		}
	}
	s.mu.Unlock()
	if len(list) == 0 {
		return
	}
	named, err := s.namers(list)
	if err != nil {
		s.o.Logger.Error("it could not be read what names lost chunks", logattr.Err(err))
		return
	}
	unasked := s.fetch(ctx, list, named)
	if ctx.Err() != nil {
		return
	}
	gone := map[string]bool{}
	for _, a := range list {
		switch {
		case s.isHere(a):
			gone[a.String()] = true
			s.count(func(c *status.ScrubCounts) { c.Repaired++ })
			s.o.Logger.Info("a chunk that was lost is here again", slog.String("address", a.String()))
		case len(named[a]) == 0:
			gone[a.String()] = true
			s.o.Logger.Info("nothing names a chunk any more that was lost", slog.String("address", a.String()))
		default:
			s.lose(a, named[a], unasked[a])
		}
	}
	s.mu.Lock()
	s.Lost = slices.DeleteFunc(s.Lost, func(l lostChunk) bool { return gone[l.Chunk] })
	s.mu.Unlock()
	s.unsavedFound = s.unsavedFound || len(gone) > 0
	s.nameObjects(ctx)
}

// nameObjects looks for the objects whose current content has lost chunks, where none is
// known yet: one walk over each slice with such chunks.
func (s *Scrubber) nameObjects(ctx context.Context) {
	wanted := map[ids.Slice]map[chunk.Address][]ids.Object{}
	s.mu.Lock()
	for _, l := range s.Lost {
		a, err := chunk.ParseAddress(l.Chunk)
		if err == nil && l.Objects == nil && len(l.Slices) > 0 {
			if wanted[l.Slices[0]] == nil {
				wanted[l.Slices[0]] = map[chunk.Address][]ids.Object{}
			}
			wanted[l.Slices[0]][a] = []ids.Object{}
		}
	}
	s.mu.Unlock()
	for id, found := range wanted {
		if err := s.walkObjects(ctx, id, found); err != nil {
			s.o.Logger.Warn("the objects of a slice could not be read", logattr.Slice(id), logattr.Err(err))
			continue
		}
		s.mu.Lock()
		for i := range s.Lost {
			if a, err := chunk.ParseAddress(s.Lost[i].Chunk); err == nil && found[a] != nil {
				s.Lost[i].Objects = found[a]
			}
		}
		s.mu.Unlock()
		s.unsavedFound = true
	}
}

// walkObjects notes the objects of a slice that lead to the chunks in found.
func (s *Scrubber) walkObjects(ctx context.Context, id ids.Slice, found map[chunk.Address][]ids.Object) error {
	first := tree.RecordKey(0)[:1]
	for from := first; from != nil && ctx.Err() == nil; {
		var records []*tree.Inode
		var last []byte
		err := s.o.Committed(id).Scan(from, []byte{first[0] + 1}, func(key, value []byte) bool {
			if len(records) == stepRecords {
				return false
			}
			last = append(last[:0], key...)
			if len(key) == 9 {
				if n, err := tree.DecodeInode(ids.Object(binary.BigEndian.Uint64(key[1:])), value); err == nil {
					records = append(records, n)
				}
			}
			return true
		})
		if err != nil {
			return err
		}
		for _, n := range records {
			s.walkContent(n, found)
		}
		if from = nil; len(records) == stepRecords {
			from = append(last, 0)
		}
	}
	return nil
}

// walkContent notes an object for each chunk that its content has. Below a lost node of its
// manifest nothing is known.
func (s *Scrubber) walkContent(n *tree.Inode, found map[chunk.Address][]ids.Object) {
	if n.Root.IsZero() {
		return
	}
	root := chunk.Root{Address: n.Root, Height: n.Height, Size: n.Size, Stored: n.Stored}
	// What cannot be read is what is lost, and was noted before.
	_ = chunk.Walk(s.o.Nodes, root, func(a chunk.Address, _ bool) bool {
		if list, is := found[a]; is && len(list) < objectsMost && !slices.Contains(list, n.Object) {
			found[a] = append(list, n.Object)
		}
		return true
	})
}
