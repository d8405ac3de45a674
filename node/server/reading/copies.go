package reading

import (
	"context"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/tree"
)

// A caller that says so (eventual) takes what a normal member has, where that one
// does not act for the slice: the cue .EventualConsistency. Such a copy is a
// state that the slice had, all of it, and nothing that was never committed. It
// comes with no lease, waits for nobody, and says how old it may be.

// seen is what a caller reads a slice from: of a copy, with what clients wrote at this
// side of a cut, and for one that asks for an earlier time as of that.
func (s *Server) seen(who *Asker, p *operate.Published, slice ids.Slice) tree.View {
	if who.AsOf != 0 {
		return tree.AsOf(s.Committed(slice), s.Past.View(slice, who.AsOf), who.AsOf)
	}
	if s.isCopy(who, p) {
		if v := s.Side(slice); v != nil {
			return v
		}
	}
	return s.Committed(slice)
}

// copied says how new what was read of a slice is; nil for a caller that did not
// ask for a copy.
func (s *Server) copied(ctx context.Context, who *Asker, p *operate.Published) (*pb.Copy, error) {
	if !who.Eventual {
		return nil, nil
	}
	out := &pb.Copy{Serial: p.Applied.Load(), Epoch: uint64(p.Row.Epoch)}
	if p.Serves(s.Clock()) {
		return out, nil
	}
	age, err := s.Heard(ctx, p.Slice)
	out.AgeNs = max(1, age.Nanoseconds())
	out.Unmerged = s.Side(p.Slice) != nil
	return out, err
}

// ofCopy makes an error of reading one that nobody waits for: what an operation
// over several slices holds stays so in a copy until its active is heard.
func (s *Server) ofCopy(p *operate.Published, err error) error {
	if fault.Is(err, fault.Busy) && !p.Serves(s.Clock()) {
		return fault.E(fault.Again, "reading.ofCopy", "", "an operation that is in the way has not ended in this copy")
	}
	return err
}
