package scrub

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/tree"
)

// readChunks reads some chunks from the disk and repairs those that are damaged. It returns
// how many bytes it read.
func (s *Scrubber) readChunks(ctx context.Context, round uint64) int64 {
	if s.check == nil || s.checkRound != round {
		s.closeCheck()
		s.mu.Lock()
		s.check, s.checkRound = s.o.Packs.Check(s.At, s.Until), round
		s.mu.Unlock()
	}
	got, err := s.check.Step(ctx, stepBytes)
	left, all := s.check.Left()
	if err != nil {
		s.o.Logger.Warn("chunks could not be written anew", logattr.Err(err))
	}
	s.count(func(c *status.ScrubCounts) {
		c.ReadBytes += uint64(got.Bytes)
		c.Chunks += uint64(got.Chunks)
		c.Damaged += uint64(len(got.Damaged) + got.Unlisted + got.Rescued)
		c.Repaired += uint64(got.Rescued)
		c.ReadErrors += uint64(got.ReadErrors)
	})
	if len(got.Damaged) > 0 {
		s.repair(ctx, got.Damaged)
	}
	if ctx.Err() != nil {
		return 0 // the step may not have been done: another life does it again
	}
	s.mu.Lock()
	s.left, s.all = left, all
	s.mu.Unlock()
	s.advance(round, func(st *state) {
		st.At, st.Until = got.At, s.check.Until()
		if got.End {
			st.Phase = phaseRecords
		}
	})
	if got.End {
		s.closeCheck()
	}
	return got.Bytes
}

func (s *Scrubber) closeCheck() {
	if s.check != nil {
		s.check.Close()
		s.check = nil
	}
}

// repair brings chunks that were damaged or are missing from other members. Those that no
// record names are left alone.
func (s *Scrubber) repair(ctx context.Context, list []chunk.Address) {
	s.unsavedFound = true
	named, err := s.namers(list)
	if err != nil {
		s.o.Logger.Error("it could not be read what names damaged chunks", logattr.Err(err))
		return // the records name them, and are looked at later
	}
	unasked := s.fetch(ctx, list, named)
	if ctx.Err() != nil {
		return
	}
	for _, a := range list {
		switch {
		case len(named[a]) == 0:
			s.count(func(c *status.ScrubCounts) { c.Unneeded++ })
		case s.isHere(a):
			s.count(func(c *status.ScrubCounts) { c.Repaired++ })
			s.o.Logger.Info("a chunk was repaired from another member", slog.String("address", a.String()))
		default:
			s.lose(a, named[a], unasked[a])
		}
	}
}

// fetch asks for chunks in the slices that name them. It returns those that are still not
// here, of which some member was not asked or gave no answer.
func (s *Scrubber) fetch(ctx context.Context, list []chunk.Address, named map[chunk.Address][]ids.Slice) (unasked map[chunk.Address]bool) {
	bySlice := map[ids.Slice][]chunk.Address{}
	for _, a := range list {
		for _, id := range named[a] {
			bySlice[id] = append(bySlice[id], a)
		}
	}
	unasked = map[chunk.Address]bool{}
	for _, id := range slices.Sorted(maps.Keys(bySlice)) {
		var missing []chunk.Address
		for _, a := range bySlice[id] {
			if !s.isHere(a) {
				missing = append(missing, a)
			}
		}
		if len(missing) == 0 {
			continue
		}
		left, answered := s.o.Fetch(ctx, id, missing)
		for _, a := range left {
			unasked[a] = unasked[a] || !answered
		}
	}
	return unasked
}

// namers returns the slices with a record that names a chunk, for those that have one.
func (s *Scrubber) namers(list []chunk.Address) (map[chunk.Address][]ids.Slice, error) {
	all, err := s.o.Meta.Slices()
	if err != nil {
		return nil, err
	}
	out := map[chunk.Address][]ids.Slice{}
	for _, id := range all {
		if !s.isMember(id) {
			continue
		}
		for _, a := range list {
			_, is, err := s.o.Meta.Plain(id, tree.RefsKey(a))
			if err != nil {
				return nil, err
			}
			if is {
				out[a] = append(out[a], id)
			}
		}
	}
	return out, nil
}

// isMember reports whether this node is a member of a slice: what is left of another is
// void.
func (s *Scrubber) isMember(id ids.Slice) bool {
	row, known := s.o.Row(id)
	_, is := row.Member(s.o.Self)
	return known && is
}

func (s *Scrubber) isHere(a chunk.Address) bool {
	_, is := s.o.Packs.Length(a)
	return is
}
