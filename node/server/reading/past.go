package reading

import (
	"context"
	"slices"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// A caller may read a slice as of a hybrid time T: the cue .Snapshot. The answer never
// changes, so that it comes with no lease. A node answers as of T once these hold:
//
//   - it acts for the slice;
//   - its own hybrid clock is past T, for which it waits a moment;
//   - an entry with a time after T is applied (operate.CloseTime says why nothing at or
//     before T can commit then, under no later active either);
//   - no intent that may have a time at or before T holds what is read (tree.AsOf);
//   - T is not before the time from which on the slice has all its versions, or it is one
//     that a snapshot keeps there, both before and after the reading.

// asOf runs a reading of a slice at the time that the caller asks for, if it asks for one.
func (s *Server) asOf(ctx context.Context, who *Asker, slice ids.Slice, read func() error) error {
	if who.AsOf == 0 {
		return read()
	}
	if err := s.close(ctx, slice, who.AsOf); err != nil {
		return err
	}
	err := read()
	if gone := s.retained(slice, who.AsOf); gone != nil {
		return gone // what was read may lack versions that were collected meanwhile
	}
	return err
}

// close returns once a slice can be read as of a time. Busy: not yet. Invalid: never, or
// not before the clocks are right; the message names the times that can be read.
func (s *Server) close(ctx context.Context, slice ids.Slice, at hlc.Time) error {
	const op fault.Op = "reading.close"
	if err := s.retained(slice, at); err != nil {
		return err
	}
	if now := s.HLC.Now(); at > now {
		if ahead := at.Wall().Sub(now.Wall()); ahead > hlc.MaxAhead {
			return fault.Errorf(fault.Invalid, op, timeText(at), "the time is in the future: it is %s now; name an earlier one", timeText(now))
		}
		return fault.E(fault.Busy, op, timeText(at), "this node's clock has not reached the time")
	}
	if uint64(at) < s.Published(slice).AppliedTime.Load() {
		return nil
	}
	resume, err := wire.Yield(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return s.Past.Close(ctx, slice, at)
}

// retained answers Invalid where a slice has no longer all versions of a time.
func (s *Server) retained(slice ids.Slice, at hlc.Time) error {
	since, ok, err := tree.WholeSince(s.Committed(slice))
	if err != nil {
		return err
	}
	if !ok {
		since = hlc.FromWall(s.HLC.Now().Wall().Add(-s.Past.Retention))
	}
	if at >= since {
		return nil
	}
	kept, _, err := tree.Kept(s.Committed(slice))
	if err != nil {
		return err
	}
	if _, is := slices.BinarySearch(kept, at); !is {
		first := since.Wall().Add(time.Second - 1).UTC().Format(time.RFC3339)
		return fault.Errorf(fault.Invalid, "reading.retained", timeText(at), "what was there then is not retained, and no snapshot keeps it; the earliest time to be had is %s", first)
	}
	return nil
}

// timeText is a time as people write it in a path.
func timeText(t hlc.Time) string { return t.Wall().UTC().Round(time.Second).Format(time.RFC3339) }
