package cue

import (
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Set is the cues in force at one place of a path: a plain value; the zero Set
// is no cues.
type Set struct {
	site, snapshot     string
	repSites, repLevel uint8
	syncLevel          int8
	coherence, maxTime int32
	present            uint16 // one bit for each Name
	count              uint8  // components taken, overridden ones too
}

// With returns the set with one more cue, which overrides an earlier one of
// its name. More than MaxPerPath components are Invalid.
func (s Set) With(c Cue) (Set, error) {
	const op fault.Op = "cue.With"
	if c.Name == None || c.Name >= names {
		return s, fault.E(fault.Invalid, op, "", "not a cue")
	}
	if s.count >= MaxPerPath {
		return s, fault.Errorf(fault.Invalid, op, c.String(), "a path has at most %d cues", MaxPerPath)
	}
	s.count++
	s.present |= 1 << c.Name
	switch c.Name {
	case Site:
		s.site = c.Text
	case Snapshot:
		s.snapshot = c.Text
	case RepSites:
		s.repSites = uint8(c.Number)
	case RepLevel:
		s.repLevel = uint8(c.Number)
	case SyncLevel:
		s.syncLevel = int8(c.Number)
	case MaxTime:
		s.maxTime = int32(c.Number)
	case Coherence:
		s.coherence = int32(c.Number)
	}
	return s, nil
}

// Empty reports whether no cue is in force.
func (s Set) Empty() bool { return s.present == 0 }

// Has reports whether a cue is in force.
func (s Set) Has(n Name) bool { return s.present&(1<<n) != 0 }

// Get returns the cue in force of that name.
func (s Set) Get(n Name) (Cue, bool) {
	if !s.Has(n) {
		return Cue{}, false
	}
	c := Cue{Name: n}
	switch n {
	case Site:
		c.Text = s.site
	case Snapshot:
		c.Text = s.snapshot
	case RepSites:
		c.Number = int64(s.repSites)
	case RepLevel:
		c.Number = int64(s.repLevel)
	case SyncLevel:
		c.Number = int64(s.syncLevel)
	case MaxTime:
		c.Number = int64(s.maxTime)
	case Coherence:
		c.Number = int64(s.coherence)
	}
	return c, true
}

// All returns the cues in force, in the order of Names.
func (s Set) All() []Cue {
	var out []Cue
	for n := Site; n < names; n++ {
		if c, ok := s.Get(n); ok {
			out = append(out, c)
		}
	}
	return out
}

// String renders the set as the path that makes it, such as
// `.Site=tokyo/.RepLevel=2`.
func (s Set) String() string { return Join(s.All()) }

// Join renders cues as a path.
func Join(cues []Cue) string {
	parts := make([]string, len(cues))
	for i, c := range cues {
		parts[i] = c.String()
	}
	return strings.Join(parts, "/")
}

// ParsePath gathers the cues of a slash-separated path; what is no cue is
// skipped.
func ParsePath(path string) (Set, error) {
	var s Set
	for part := range strings.SplitSeq(path, "/") {
		c, ok, err := Parse(part)
		if err != nil {
			return s, err
		}
		if ok {
			if s, err = s.With(c); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// Supported answers NotSupported where a cue in force does not work yet, so
// that nothing asked for is silently left undone, and Invalid where two contradict
// each other.
func (s Set) Supported() error {
	const op fault.Op = "cue.Supported"
	for n := Site; n < names; n++ {
		if s.Has(n) && !n.Honoured() {
			return fault.Errorf(fault.NotSupported, op, n.String(), "the cue %s is known but does not work yet", n)
		}
	}
	if s.Has(WriteOnce) && s.Has(Coherence) {
		return contradiction(op)
	}
	return nil
}

// contradiction refuses .Coherence with .WriteOnce: a write-once file is done when all
// members have it, and with .Coherence the active alone is enough.
func contradiction(op fault.Op) error {
	return fault.Errorf(fault.Invalid, op, Coherence.String(), "%s contradicts %s, which waits for all members: keep one of the two", Coherence, WriteOnce)
}

// Only returns the part of the set that affects a call.
func (s Set) Only(c Call) Set {
	for n := Site; n < names; n++ {
		if !n.Affects(c) {
			s.present &^= 1 << n
		}
	}
	return s
}

// EventualLimit is .MaxTime where a path has .EventualConsistency and does not say
// it (WheelFS, section 3.3).
const EventualLimit = time.Second

// Terms say how an operation waits for nodes. The zero Terms ask for the truth,
// however long that takes.
type Terms struct {
	// Limit is how long it may wait in all: .MaxTime. 0: the path does not say.
	Limit time.Duration
	// Eventual: it takes what is at hand where the truth takes too long.
	Eventual bool
}

// Terms returns them.
func (s Set) Terms() Terms {
	c, _ := s.Get(MaxTime)
	t := Terms{Limit: time.Duration(c.Number) * time.Millisecond, Eventual: s.Has(EventualConsistency)}
	if t.Eventual && t.Limit == 0 {
		t.Limit = EventualLimit
	}
	return t
}

// Levels of OperateRequest.sync_level.
const (
	SyncAll    uint32 = 0
	SyncQuorum uint32 = 0xffffffff
)

// Sync returns after how many acknowledgements an operation is answered, as
// OperateRequest.sync_level counts.
func (s Set) Sync() uint32 {
	switch c, ok := s.Get(SyncLevel); {
	case !ok:
		return SyncAll
	case c.Number == Quorum:
		return SyncQuorum
	case c.Number == 0: // for whoever must wait all the same
		return 1
	default:
		return uint32(c.Number)
	}
}

// Lazy reports whether a close waits for no node (`.SyncLevel=0`).
func (s Set) Lazy() bool {
	c, ok := s.Get(SyncLevel)
	return ok && c.Number == 0
}
