package scrub

import (
	"context"
	"log/slog"
	"slices"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/tree"
)

// readRecords looks whether the chunks are here that some records name. It returns what
// that counts in bytes.
func (s *Scrubber) readRecords(ctx context.Context, round uint64) int64 {
	s.mu.Lock()
	id, behind := s.Slice, s.Behind
	s.mu.Unlock()
	all, err := s.o.Meta.Slices()
	if err != nil {
		s.o.Logger.Error("the slices of this node could not be listed", logattr.Err(err))
		return mostRate // not at once again
	}
	slices.Sort(all)
	at := slices.IndexFunc(all, func(x ids.Slice) bool { return x >= id })
	if at < 0 {
		s.advance(round, func(st *state) { st.Phase, st.Slice, st.Behind = phaseStates, 0, nil })
		return 0
	}
	if all[at] != id {
		id, behind = all[at], nil
	}
	looked, last, missing, err := s.absent(id, behind)
	if err == nil && len(missing) > 0 && s.o.Whole(ctx, id) {
		missing, err = s.certain(id, missing)
		if err == nil && len(missing) > 0 {
			s.count(func(c *status.ScrubCounts) { c.Missing += uint64(len(missing)) })
			s.o.Logger.Warn("chunks are missing on this disk", logattr.Slice(id), slog.Any("chunks", len(missing)))
			s.repair(ctx, missing)
		}
	}
	if err != nil {
		s.o.Logger.Error("records of references could not be read", logattr.Slice(id), logattr.Err(err))
	}
	if ctx.Err() != nil {
		return 0
	}
	s.count(func(c *status.ScrubCounts) { c.Records += uint64(looked) })
	s.advance(round, func(st *state) {
		if st.Slice, st.Behind = id, last; last == nil || err != nil {
			st.Slice, st.Behind = id+1, nil
		}
	})
	return int64(looked) * recordBytes
}

// absent looks at some records of a slice behind one, and returns the chunks of current
// and older versions that are not here. last is the record to go on behind; nil: there are no more.
func (s *Scrubber) absent(id ids.Slice, behind []byte) (looked int, last []byte, missing []chunk.Address, err error) {
	if !s.isMember(id) {
		return 0, nil, nil, nil
	}
	first := tree.RefsKey(chunk.Address{})[:1]
	from := first
	if behind != nil {
		from = append(slices.Clone(behind), 0)
	}
	err = s.o.Committed(id).Scan(from, []byte{first[0] + 1}, func(key, value []byte) bool {
		if looked == stepRecords {
			return false
		}
		looked++
		last = append(last[:0], key...)
		if a, _, is := tree.RefAddress(key, value); is && !s.isHere(a) {
			missing = append(missing, a)
		}
		return true
	})
	if looked < stepRecords {
		last = nil
	}
	return looked, last, missing, err
}

// certain leaves those chunks in a list that are missing beyond doubt. A record that went
// meanwhile names nothing: its chunk was collected. What is noted as still to come from a
// member that is away is not missing.
func (s *Scrubber) certain(id ids.Slice, list []chunk.Address) ([]chunk.Address, error) {
	coming := map[chunk.Address]bool{}
	err := replog.EachUnheld(s.o.Meta, id, func(_ replica.EntryID, addresses []byte) {
		for ; len(addresses) >= chunk.AddressSize; addresses = addresses[chunk.AddressSize:] {
			coming[chunk.Address(addresses[:chunk.AddressSize])] = true
		}
	})
	var out []chunk.Address
	for _, a := range list {
		if err != nil {
			return nil, err
		}
		var value []byte
		var is bool
		key := tree.RefsKey(a)
		if value, is, err = s.o.Meta.Plain(id, key); err != nil || !is || coming[a] {
			continue
		}
		if _, _, is = tree.RefAddress(key, value); is && !s.isHere(a) {
			out = append(out, a)
		}
	}
	return out, err
}
