// Package scrub reads everything that a node stores, slowly and within a period, and
// repairs what it finds damaged or missing from other members: docs/design.md, section 5.
// It orders nothing and holds no lock that others wait for. Its place is on the disk, so
// that another life of the node goes on there. A Scrubber is safe for concurrent use; one
// goroutine calls Run.
package scrub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/store/meta"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
)

const (
	// stepBytes is about how much one step reads, and stepRecords how many records of
	// references one looks at.
	stepBytes, stepRecords = 1 << 20, 1024
	// recordBytes is what a record counts where steps are paced by bytes.
	recordBytes = 256
	// leastRate and mostRate bound the pace, in bytes a second: a node with little to read
	// is done early, and one that is late leaves the disk to its clients.
	leastRate, mostRate = 64 << 10, 32 << 20
	// paceShare is the part of the period that a round is to take: the rest is for a node
	// that stands still or falls behind.
	paceShare = 3.0 / 4
	// longestPause bounds a pause, so that the clock is looked at.
	longestPause = time.Minute
	// saveEvery is how often the place is saved: a start goes back that far at most.
	saveEvery = 10 * time.Second
	// retryEvery is how often members are asked again for what none has given.
	retryEvery = time.Minute
)

// Options are what a Scrubber is made of. Every field is needed but FS.
type Options struct {
	Self ids.Node
	// Period is within what time everything is read; 0: only where Start is called.
	Period time.Duration
	// Dir is where the place is kept, in FS; nil: in the operating system's.
	Dir   string
	FS    vfs.FS
	Packs *pack.Packs
	Meta  *meta.DB
	// Nodes reads manifests' nodes.
	Nodes chunk.Reader
	Row   func(ids.Slice) (geoconfig.SliceRow, bool)
	// Whole reports whether this node's copy of a slice has all that it says: one that is
	// being made names chunks that are on their way.
	Whole func(context.Context, ids.Slice) bool
	// Committed is what this node's own copy of a slice shows.
	Committed func(ids.Slice) tree.View
	// Fetch asks the other members of a slice for chunks, once each, and stores them. It
	// returns those that none gave, and whether every member answered.
	Fetch func(ctx context.Context, id ids.Slice, list []chunk.Address) (left []chunk.Address, answered bool)
	Comparing
	Clock  boottime.Func
	Wall   func() time.Time
	Logger *slog.Logger
}

// Scrubber scrubs a node.
type Scrubber struct {
	o    Options
	wake chan struct{} // of length 1

	mu sync.Mutex // guards what follows
	state
	left, all int64 // bytes of packs, as of the last step
	// retryNow has lost chunks asked for at once.
	retryNow bool

	// Run alone uses the rest.
	check        *pack.Checker // nil: none is under way
	checkRound   uint64        // the round that check belongs to
	saved        time.Duration // when the place was saved last
	retried      time.Duration // when lost chunks were asked for last
	unsavedFound bool          // something was found since then
}

// Open reads where an earlier life of the node was. The error is IO; a place that makes no
// sense is thrown away.
func Open(o Options) (*Scrubber, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	s := &Scrubber{o: o, wake: make(chan struct{}, 1)}
	var err error
	s.state, err = load(o.FS, o.Dir, o.Logger)
	s.retried = o.Clock() - retryEvery
	return s, err
}

// Run scrubs until ctx ends.
func (s *Scrubber) Run(ctx context.Context) {
	defer s.closeCheck()
	for ctx.Err() == nil {
		timer := time.NewTimer(s.step(ctx))
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	s.save(true)
}

// Start begins a round now, at a rate in bytes a second; 0: mostRate. It returns the round's
// number. An ordered round that is under way goes on, at the new rate.
func (s *Scrubber) Start(rate int64) uint64 {
	if rate <= 0 {
		rate = mostRate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Running || !s.Ordered {
		s.beginLocked()
		s.Ordered = true
	}
	s.Rate, s.retryNow = rate, true
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return s.Round
}

// beginLocked begins a round. Callers hold mu.
func (s *Scrubber) beginLocked() {
	s.Round++
	s.Running, s.Ordered, s.Rate, s.Began = true, false, 0, s.o.Wall().UnixNano()
	s.Phase, s.At, s.Until, s.Slice, s.Behind = phaseChunks, pack.Place{}, 0, 0, nil
	s.Now = status.ScrubCounts{}
	s.left, s.all = 1, 1
}

// step does a piece of work, and returns how long to rest then.
func (s *Scrubber) step(ctx context.Context) time.Duration {
	began := s.o.Clock()
	s.mu.Lock()
	ordered := s.retryNow
	s.retryNow = false
	s.mu.Unlock()
	s.unsavedFound = s.unsavedFound || ordered // an order outlives this life
	if ordered || began-s.retried >= retryEvery {
		s.retried = began
		s.retry(ctx)
		s.recheck(ctx)
	}
	phase, round, wait := s.due()
	if wait > 0 {
		s.save(false)
		return wait
	}
	cost := int64(0)
	switch phase {
	case phaseChunks:
		cost = s.readChunks(ctx, round)
	case phaseRecords:
		cost = s.readRecords(ctx, round)
	case phaseStates:
		cost = s.readStates(ctx, round)
	}
	s.save(false)
	return max(s.pace(cost), s.o.Clock()-began)
}

// due says what there is to do now, or for how long there is nothing.
func (s *Scrubber) due() (phase phase, round uint64, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Running {
		if s.o.Period == 0 {
			return 0, 0, longestPause
		}
		since := time.Duration(s.o.Wall().UnixNano() - s.Began)
		if s.Began != 0 && since >= 0 && since < s.o.Period {
			return 0, 0, min(s.o.Period-since, longestPause)
		}
		s.beginLocked()
		s.unsavedFound = true
	}
	return s.Phase, s.Round, 0
}

// pace returns how long to rest behind a step that cost so many bytes.
func (s *Scrubber) pace(cost int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate := float64(s.Rate)
	if !s.Ordered {
		over := time.Duration(float64(s.o.Period)*paceShare) - time.Duration(s.o.Wall().UnixNano()-s.Began)
		rate = mostRate
		if over > 0 {
			rate = min(max(float64(s.left)/over.Seconds(), leastRate), mostRate)
		}
	}
	return min(time.Duration(float64(cost)/rate*float64(time.Second)), longestPause)
}

// advance changes the state, if a round is still the one under way.
func (s *Scrubber) advance(round uint64, change func(st *state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Running && s.Round == round {
		change(&s.state)
	}
}

// count adds to what this round found, and to what all did.
func (s *Scrubber) count(add func(*status.ScrubCounts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.Now)
	add(&s.Total)
}

// end ends a round.
func (s *Scrubber) end(round uint64) {
	s.advance(round, func(st *state) {
		st.Running, st.Ordered = false, false
		st.EndedRound, st.Ended = round, s.o.Wall().UnixNano()
		st.Took = time.Duration(max(st.Ended-st.Began, 0))
		st.Last = st.Now
		s.o.Logger.Info("all that this node stores was read", slog.Uint64("round", round), slog.Duration("took", st.Took),
			slog.Uint64("damaged", st.Now.Damaged), slog.Uint64("missing", st.Now.Missing), slog.Uint64("repaired", st.Now.Repaired), slog.Any("lost", len(st.Lost)))
	})
	s.unsavedFound = true
}

// Report tells how far it is and what it found, with at most so many of the lost chunks.
func (s *Scrubber) Report(lost int) status.Scrub {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := status.Scrub{
		PeriodNS: s.o.Period, Round: s.Round, Running: s.Running, Ordered: s.Ordered, BeganAtNS: s.Began,
		EndedRound: s.EndedRound, EndedAtNS: s.Ended, TookNS: s.Took, Now: s.Now, Last: s.Last, Total: s.Total, LostChunks: len(s.Lost),
	}
	if s.Running {
		out.Phase = s.Phase.String()
		if out.DoneShare = 1; s.Phase == phaseChunks && s.all > 0 {
			out.DoneShare = 1 - float64(s.left)/float64(s.all)
		}
	}
	for _, d := range s.Different {
		out.Different = append(out.Different, d.DifferentState)
	}
	for _, l := range s.Lost[:min(lost, len(s.Lost))] {
		out.Lost = append(out.Lost, l.clone())
	}
	return out
}

// save writes the place down, where that is due or something was found.
func (s *Scrubber) save(now bool) {
	if !now && !s.unsavedFound && s.o.Clock()-s.saved < saveEvery {
		return
	}
	s.mu.Lock()
	data, err := s.encode()
	s.mu.Unlock()
	if err == nil {
		err = write(s.o.FS, s.o.Dir, data)
	}
	s.saved, s.unsavedFound = s.o.Clock(), false
	if err != nil { // the next life begins where the last place was saved
		s.o.Logger.Warn("the place of the scrub could not be saved", logattr.Err(err))
	}
}
