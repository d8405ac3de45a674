package scrub

import (
	"context"
	"log/slog"
	"slices"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
)

// A standby compares its state of a slice with the active's, as of one serial. Where they
// differ it asks the other standbys. If one of them has the state that it has, the active's
// is the odd one, and people must decide: a state that clients read is not thrown away by
// those who do not act for it. Otherwise this node's is the odd one, or there are only two,
// and what the active answers is what clients were told. Then this node is made anew.

const (
	// compareTries bounds how often a comparison is tried in one step: both members must
	// stand at one serial.
	compareTries = 5
	// anewMost bounds how often a state is made anew that differs again and again: that is
	// a fault of the program, and people must look.
	anewMost = 3
)

// Comparing is how the states of slices are compared; its functions may be called beside
// each other.
type Comparing struct {
	// Rows lists the rows of all slices.
	Rows func() []geoconfig.SliceRow
	// Compare compares this node's state with another member's, as of one serial. rest is
	// called with the bytes that were read, and waits. The errors are those of
	// snapshot.Receiver.CompareWith.
	Compare func(ctx context.Context, id ids.Slice, with ids.Node, rest func(context.Context, int) error) (at ids.Serial, equal bool, err error)
	// Distrust has this node's copy made anew; false: that is not possible now.
	Distrust func(ctx context.Context, id ids.Slice) bool
}

// standsIn reports whether this node is a standby of a slice by its row.
func (s *Scrubber) standsIn(row *geoconfig.SliceRow) bool {
	m, is := row.Member(s.o.Self)
	return is && m.State == geoconfig.Normal && row.Active != s.o.Self
}

// readStates compares the state of the next slice of which this node is a standby.
func (s *Scrubber) readStates(ctx context.Context, round uint64) int64 {
	s.mu.Lock()
	from := s.Slice
	s.mu.Unlock()
	var next *geoconfig.SliceRow
	for _, row := range s.o.Comparing.Rows() {
		if row.ID >= from && s.standsIn(&row) && (next == nil || row.ID < next.ID) {
			next = &row
		}
	}
	if next == nil {
		s.end(round)
		return 0
	}
	s.compare(ctx, next)
	if ctx.Err() == nil {
		s.advance(round, func(st *state) { st.Slice = next.ID + 1 })
	}
	return 0 // it rested by itself
}

// compare compares the state of a slice with the active's, and acts where they differ.
func (s *Scrubber) compare(ctx context.Context, row *geoconfig.SliceRow) {
	at, equal, err := s.compareWith(ctx, row.ID, row.Active)
	if err != nil {
		if ctx.Err() == nil {
			s.o.Logger.Info("a slice's state could not be compared", logattr.Slice(row.ID), logattr.Err(err))
		}
		return
	}
	s.count(func(c *status.ScrubCounts) { c.States++ })
	if equal {
		s.agree(row.ID)
		return
	}
	s.differ(ctx, row, at)
}

func (s *Scrubber) compareWith(ctx context.Context, id ids.Slice, with ids.Node) (at ids.Serial, equal bool, err error) {
	for range compareTries {
		at, equal, err = s.o.Comparing.Compare(ctx, id, with, s.rest)
		if !fault.Is(err, fault.Again) {
			break
		}
	}
	return at, equal, err
}

// rest waits as the pace says behind so many bytes.
func (s *Scrubber) rest(ctx context.Context, bytes int) error {
	timer := time.NewTimer(s.pace(int64(bytes)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Canceled, "scrub.rest", "", ctx.Err())
	}
}

// agree notes that a state is that of the active.
func (s *Scrubber) agree(id ids.Slice) {
	s.mu.Lock()
	before := len(s.Different)
	s.Different = slices.DeleteFunc(s.Different, func(d differentState) bool { return d.Slice == id })
	gone := len(s.Different) < before
	s.mu.Unlock()
	if gone {
		s.unsavedFound = true
		s.o.Logger.Info("a slice's state is that of the active again", logattr.Slice(id))
	}
}

// differ raises the alarm, and has this node's state made anew where it is the odd one.
func (s *Scrubber) differ(ctx context.Context, row *geoconfig.SliceRow, at ids.Serial) {
	odd := false // the active's state is
	for _, m := range row.Normals() {
		if m != s.o.Self && m != row.Active && !odd {
			_, equal, err := s.compareWith(ctx, row.ID, m)
			odd = err == nil && equal
		}
	}
	if ctx.Err() != nil {
		return
	}
	d, anew := s.note(row, at, odd)
	switch {
	case odd:
		s.o.Logger.Error("the active's state of a slice differs from that of two standbys: hand the slice over to one of them",
			logattr.Slice(row.ID), logattr.Node(row.Active), slog.Uint64("serial", uint64(at)))
	case !anew:
		s.o.Logger.Error("a slice's state differs from the active's again and again", logattr.Slice(row.ID), slog.Uint64("serial", uint64(at)))
	case s.o.Comparing.Distrust(ctx, row.ID):
		s.mu.Lock()
		if i := s.differentLocked(row.ID); i >= 0 {
			s.Different[i].Anew = d.Anew + 1
		}
		s.mu.Unlock()
		s.o.Logger.Error("a slice's state differs from the active's: it is made anew", logattr.Slice(row.ID), logattr.Node(row.Active), slog.Uint64("serial", uint64(at)))
	default:
		s.o.Logger.Error("a slice's state differs from the active's, and too few members are left to make it anew", logattr.Slice(row.ID), slog.Uint64("serial", uint64(at)))
	}
	s.unsavedFound = true
}

// note remembers that a state differs. It reports whether the state may be made anew.
func (s *Scrubber) note(row *geoconfig.SliceRow, at ids.Serial, odd bool) (d differentState, anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.differentLocked(row.ID)
	if i < 0 {
		i = len(s.Different)
		s.Different = append(s.Different, differentState{DifferentState: status.DifferentState{Slice: row.ID}})
		s.Now.Different++
		s.Total.Different++
	}
	x := &s.Different[i]
	x.Serial, x.With, x.AtNS, x.ActiveDiffers = at, row.Active, s.o.Wall().UnixNano(), odd
	return *x, x.Anew < anewMost
}

// differentLocked returns where a slice stands among those that differ, or -1. Callers hold
// mu.
func (s *Scrubber) differentLocked(id ids.Slice) int {
	return slices.IndexFunc(s.Different, func(d differentState) bool { return d.Slice == id })
}

// recheck compares again what differed, once it was made anew or may be.
func (s *Scrubber) recheck(ctx context.Context) {
	s.mu.Lock()
	list := slices.Clone(s.Different)
	s.mu.Unlock()
	for _, d := range list {
		row, known := s.o.Row(d.Slice)
		_, member := row.Member(s.o.Self)
		switch {
		case !known || !member || row.Active == s.o.Self:
			s.agree(d.Slice) // what it has is void, or is what counts
		case s.standsIn(&row) && s.o.Whole(ctx, d.Slice):
			s.compare(ctx, &row)
		}
	}
}
